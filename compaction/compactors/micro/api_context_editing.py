"""The API's own context editing: builds `context_management` for a request, and reads the edits that were applied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.compactors.micro.clearing import list_clearable
from compaction.context.tokens import count_block_tokens
from compaction.transcripts.client_protocol import ToolName
from compaction.transcripts.entries import Entry, ToolUseBlock
from compaction.transcripts.json_fields import get_count, get_fields, get_items, get_text

CLEAR_TOOL_USES = "clear_tool_uses_20250919"  # protocol constants: the names of the strategies
CLEAR_THINKING = "clear_thinking_20251015"
# The results of the first are large, the inputs of the second.
CLEARED_BY_RESULT = frozenset(
    {ToolName.READ, ToolName.BASH, ToolName.GREP, ToolName.GLOB, ToolName.WEB_FETCH, ToolName.WEB_SEARCH}
)
CLEARED_BY_INPUT = frozenset({ToolName.EDIT, ToolName.WRITE, ToolName.NOTEBOOK_EDIT})


@dataclass(frozen=True, slots=True)
class ContextEditingSettings:
    """The client's figures: the size at which the server clears, its target, and the idle time for thinking."""

    trigger_tokens: int = 180_000
    target_tokens: int = 40_000
    idle_seconds: int = 60 * 60
    read_tools: frozenset[str] = CLEARED_BY_RESULT
    write_tools: frozenset[str] = CLEARED_BY_INPUT

    @property
    def min_cleared_tokens(self) -> int:
        """Minimum to clear at once. Clearing breaks the cache, so it has to bring the context down to the target."""
        return max(0, self.trigger_tokens - self.target_tokens)


DEFAULT_EDITING_SETTINGS = ContextEditingSettings()


@dataclass(frozen=True, slots=True)
class AppliedEdit:
    """The effect of one strategy on one request."""

    type: str
    cleared_input_tokens: int = 0
    cleared_tool_uses: int = 0
    cleared_thinking_turns: int = 0


def build_context_management(
    entries: Sequence[Entry],
    tool_names: Sequence[str],
    *,
    idle_seconds: float | None,
    has_thinking: bool,
    settings: ContextEditingSettings = DEFAULT_EDITING_SETTINGS,
) -> dict[str, object] | None:
    """Return the strategies that apply, thinking first as the API requires; None when there is none.

    `tool_names` are all tools of the request: the API takes only a list of excluded tools.
    """
    edits: list[dict[str, object]] = []
    if has_thinking:
        edits.append(_clear_thinking(idle_seconds, settings))
    names = set(tool_names)
    if readers := settings.read_tools & names:
        kept_uses = count_fitting_uses(_count_result_tokens(entries, readers), settings.target_tokens)
        edits.append(_clear_uses(kept_uses, names - readers, settings))
    if writers := settings.write_tools & names:
        kept_uses = count_fitting_uses(_count_input_tokens(entries, writers), settings.target_tokens)
        edits.append(_clear_uses(kept_uses, names - writers, settings) | {"clear_tool_inputs": sorted(writers)})
    return {"edits": edits} if edits else None


def build_result_clearing(
    tool_names: Sequence[str], *, kept_uses: int, settings: ContextEditingSettings = DEFAULT_EDITING_SETTINGS
) -> dict[str, object]:
    """Return the strategy that clears only results, for a request whose history was not measured.

    An agent without any of the known tools has its own, and all of their results may be cleared.
    """
    names = set(tool_names)
    readers = settings.read_tools & names
    return _clear_uses(kept_uses, names - readers if readers else set(), settings)


def _clear_thinking(idle_seconds: float | None, settings: ContextEditingSettings) -> dict[str, object]:
    is_cold = idle_seconds is not None and idle_seconds > settings.idle_seconds
    return {"type": CLEAR_THINKING, "keep": {"type": "thinking_turns", "value": 1} if is_cold else "all"}


def _clear_uses(kept_uses: int, excluded: set[str], settings: ContextEditingSettings) -> dict[str, object]:
    minimum = settings.min_cleared_tokens
    return {
        "type": CLEAR_TOOL_USES,
        "trigger": {"type": "input_tokens", "value": settings.trigger_tokens},
        "keep": {"type": "tool_uses", "value": kept_uses},
        **({"clear_at_least": {"type": "input_tokens", "value": minimum}} if minimum else {}),
        "exclude_tools": sorted(excluded),
    }


def count_fitting_uses(sizes: Sequence[int], target_tokens: int) -> int:
    """Return how many of the newest uses fit the target, at least one. The API takes a number of uses, not tokens."""
    remaining, count = target_tokens, 0
    for tokens in reversed(sizes):
        remaining -= tokens
        if remaining < 0:
            break
        count += 1
    return max(1, count)


def _count_result_tokens(entries: Sequence[Entry], tools: frozenset[str]) -> list[int]:
    return [result.tokens for result in list_clearable(entries, tools=tools)]


def _count_input_tokens(entries: Sequence[Entry], tools: frozenset[str]) -> list[int]:
    return [
        count_block_tokens(block)
        for entry in entries
        for block in (entry.message.content if entry.message else ())
        if isinstance(block, ToolUseBlock) and block.name in tools
    ]


def read_applied_edits(response: Mapping[str, object]) -> tuple[AppliedEdit, ...]:
    """Return the edits reported in a response or at the end of its stream. Malformed ones are left out."""
    applied = get_items(get_fields(response, "context_management"), "applied_edits")
    return tuple(
        AppliedEdit(
            get_text(edit, "type") or "",
            get_count(edit, "cleared_input_tokens") or 0,
            get_count(edit, "cleared_tool_uses") or 0,
            get_count(edit, "cleared_thinking_turns") or 0,
        )
        for edit in applied
        if isinstance(edit, Mapping) and get_text(edit, "type")
    )
