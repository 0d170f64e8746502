"""The messages of a thread as the model sees them now, to pick the one a partial compaction starts from or ends at."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compaction.compactors.selections import list_selectable
from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import Entry
from dashboard.pages.compaction_messages import SeenMessage, tell_messages

PIVOTS_SHOWN = 50


@dataclass(frozen=True)
class PivotList:
    """One stretch of the messages; `chosen` is the picked one where it is not in this stretch."""

    agent_id: str
    rows: tuple[SeenMessage, ...]
    chosen: SeenMessage | None
    picked_uuid: str
    total: int
    first: int
    previous: int | None
    next: int | None

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1


def list_pivots(
    entries: Sequence[Entry], *, agent_id: str, picked_uuid: str = "", first: int | None = None, shows_words: bool
) -> PivotList:
    """`entries` are all of the thread. Without a `first` the stretch with the picked message is shown, or the last."""
    seen = list_selectable(slice_context(follow_chain(entries)))
    messages = tell_messages([entry for entry in seen if entry.uuid and entry.message is not None])
    if not shows_words:
        messages = tuple(replace(message, words="") for message in messages)
    picked = next((message for message in messages if message.entry_uuid == picked_uuid), None)
    if first is None:
        first = picked.number if picked else len(messages)
    start = max(0, min(first, len(messages)) - 1) // PIVOTS_SHOWN * PIVOTS_SHOWN
    rows = messages[start : start + PIVOTS_SHOWN]
    return PivotList(
        agent_id=agent_id,
        rows=rows,
        chosen=picked if picked not in rows else None,
        picked_uuid=picked.entry_uuid if picked else "",
        total=len(messages),
        first=start + 1,
        previous=start + 1 - PIVOTS_SHOWN if start else None,
        next=start + 1 + PIVOTS_SHOWN if start + PIVOTS_SHOWN < len(messages) else None,
    )
