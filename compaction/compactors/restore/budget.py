"""The lines that bring something back, and the items that say what became of each thing considered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.compactors.outcome import RestoredItem, RestoredKind, RestoredState
from compaction.context.tokens import CHARACTERS_PER_TOKEN, count_entry_tokens, count_text_tokens
from compaction.transcripts.entries import Entry
from compaction.transcripts.payloads import Attachment


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreBudgets:
    """How much may come back. The figures are the client's; `overall_tokens` is ours and off by default."""

    most_files: int = 5
    file_tokens: int = 5_000
    all_files_tokens: int = 50_000
    skill_tokens: int = 5_000
    all_skills_tokens: int = 25_000
    server_tokens: int = 5_000
    all_servers_tokens: int = 25_000
    overall_tokens: int | None = None


def make_attachment_entry(kind: str, text: str, attachment: Mapping[str, object]) -> Entry:
    """An attachment line that shows the model this text; uuid and parent are stamped later."""
    fields = {
        "attachment": {"type": kind, **attachment},
        "rendered": [{"content": text}],
        "renderedRole": "user",
    }
    return Entry("attachment", payload=Attachment(kind, (text,), "user"), fields=fields)


def restore(kind: RestoredKind, name: str, entry: Entry, *, cut: str = "") -> RestoredItem:
    """An item that came back; `cut` is the sentence for what had to be left out of it."""
    state = RestoredState.TRUNCATED if cut else RestoredState.RESTORED
    return RestoredItem(
        kind, clean_name(name), count_entry_tokens(entry), state, cut, "cut_to_fit" if cut else "", entry
    )


def skip(kind: RestoredKind, name: str, reason: str, *, code: str, tokens: int = 0) -> RestoredItem:
    """An item that did not come back, with the reason."""
    return RestoredItem(kind, clean_name(name), tokens, RestoredState.SKIPPED, reason, code)


def clean_name(name: str) -> str:
    """A name from a transcript on one line, without control characters."""
    return "".join(character if character.isprintable() else " " for character in name)[:500]


def fit_text(text: str, head: str, limit_tokens: int, mark: str) -> tuple[str, bool]:
    """Head and text within the limit, cut at a line end with the mark where they are too long; whether it was cut."""
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
    """The items with those turned away that do not fit the total any more; a smaller one after them still may."""
    used = 0
    kept = []
    for item in items:
        if item.state is RestoredState.SKIPPED or used + item.tokens <= limit_tokens:
            used += item.tokens if item.state is not RestoredState.SKIPPED else 0
            kept.append(item)
        else:
            reason = f"The {limit_tokens:,} tokens for {what} do not hold it beside what came first."
            kept.append(RestoredItem(item.kind, item.name, item.tokens, RestoredState.SKIPPED, reason, "total_used_up"))
    return kept
