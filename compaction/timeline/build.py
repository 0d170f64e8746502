"""Builds the timeline of a session from its observations: the one way from observations to calls."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from compaction.prompt.fingerprint import Fingerprint
from compaction.timeline.api_clearing import subtract_earlier_clearing
from compaction.timeline.calls import Call, collect_calls
from compaction.timeline.client_reports import merge_client_reports
from compaction.timeline.observations import REPORT, LineKind, Observation
from compaction.timeline.order import order_observations, split_by_thread
from compaction.timeline.telemetry import merge_telemetry

# Lines of the conversation itself: nearly all.
_USUAL = frozenset(
    {
        LineKind.RESPONSE,
        LineKind.PROMPT,
        LineKind.RESULT,
        LineKind.COMMAND,
        LineKind.OTHER,
    }
)


@dataclass(frozen=True, slots=True)
class Thread:
    """The main conversation (`agent_id` None) or one sub-agent."""

    agent_id: str | None
    observations: Sequence[Observation]
    unusual: Sequence[Observation]  # those that are not plain lines of the conversation
    calls: tuple[Call, ...]

    @property
    def conversation_calls(self) -> list[Call]:
        """Return the calls that fill the window: those that were not made beside the conversation."""
        return [call for call in self.calls if not call.is_beside]


@dataclass(frozen=True, slots=True)
class Timeline:
    """One session as observed from all sources, in order: telemetry and client reports merged with lines."""

    observations: Sequence[Observation]
    unusual: Sequence[Observation]
    threads: tuple[Thread, ...]  # the main conversation first


def build_timeline(observations: Iterable[Observation], *, shapes: Mapping[str, Fingerprint] | None = None) -> Timeline:
    """Return the timeline of one session. `shapes`: prints of system prompts and tools by their digest; without them
    requests get no fingerprint."""
    ordered: Sequence[Observation] = order_observations(observations)
    unusual = _list_unusual(ordered)
    if any(map(_is_reported, unusual)):
        ordered = merge_client_reports(subtract_earlier_clearing(merge_telemetry(ordered)))
        unusual = _list_unusual(ordered)
    named = None if shapes is None else _name_shapes(unusual, shapes)
    threads = tuple(
        Thread(agent_id, lines, _list_unusual(lines), collect_calls(lines, shapes=named))
        for agent_id, lines in split_by_thread(ordered).items()
    )
    return Timeline(ordered, unusual, threads)


def _list_unusual(observations: Iterable[Observation]) -> list[Observation]:
    return [line for line in observations if line.kind not in _USUAL or _is_reported(line)]


def _is_reported(line: Observation) -> bool:
    return line.type == REPORT or line.client_report is not None


def _name_shapes(observations: Iterable[Observation], shapes: Mapping[str, Fingerprint]) -> dict[str, Fingerprint]:
    """Return the prints by the client's name for a shape."""
    named = {each.shape[0]: shapes[each.shape[1]] for each in observations if each.shape and each.shape[1] in shapes}
    return dict(sorted(named.items()))
