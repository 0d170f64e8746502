"""Budgets of a restoration: how many files, tokens for one item and for all of a kind, and cutting to fit them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compaction.compactors.restore.items import RestoredItem, RestoredState
from compaction.context.tokens import CHARACTERS_PER_TOKEN, count_text_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreBudgets:
    """Limits of what is restored. The figures are the client's; `overall_tokens` is ours and off by default."""

    max_files: int = 5
    file_tokens: int = 5_000
    all_files_tokens: int = 50_000
    skill_tokens: int = 5_000
    all_skills_tokens: int = 25_000
    server_tokens: int = 5_000
    all_servers_tokens: int = 25_000
    overall_tokens: int | None = None


def fit_text(text: str, head: str, limit_tokens: int, mark: str) -> tuple[str, bool]:
    """Return head and text within the limit, and whether the text was cut (at a line end, with the mark)."""
    whole = f"{head}\n{text}"
    if count_text_tokens(whole) <= limit_tokens:
        return whole, False
    room = limit_tokens * CHARACTERS_PER_TOKEN - len(head) - len(mark) - 2
    if room <= 0:
        return "", True
    shown = text[:room]
    line_end = shown.rfind("\n")
    shown = shown[:line_end] if line_end > room // 2 else shown
    return f"{head}\n{shown}\n{mark}", True


def apply_total(items: Sequence[RestoredItem], limit_tokens: int, what: str) -> list[RestoredItem]:
    """Return the items, those over the total as skipped. A smaller item after a skipped one may still fit."""
    used_tokens = 0
    result = []
    for item in items:
        if item.state is RestoredState.SKIPPED:
            result.append(item)
        elif used_tokens + item.tokens <= limit_tokens:
            used_tokens += item.tokens
            result.append(item)
        else:
            reason = f"It does not fit into the {limit_tokens:,} tokens for {what} beside the items before it."
            skipped = replace(item, state=RestoredState.SKIPPED, reason=reason, code="total_used_up", entry=None)
            result.append(skipped)
    return result
