"""What a client put back after a compaction, how much of each thing, and which files it had known and left away."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from compaction.activity.files import TouchedFile, read_touched_files
from compaction.activity.tool_calls import read_activity
from compaction.transcripts.attachments import Extent, classify_extent, render_attachment
from compaction.transcripts.client_protocol import AttachmentKind
from compaction.transcripts.entries import Entry
from dashboard.models import ObservedCompaction
from dashboard.pages.compaction_messages import Sides

LONGEST_ATTACHMENT = 20_000  # characters shown of one
MOST_LEFT_FILES = 50


@dataclass(frozen=True)
class RestoredView:
    """One attachment that was put back. Name, age, text and the line it came in are content."""

    kind: str
    entry_uuid: str
    name: str
    tokens: int
    age_seconds: int | None
    extent: Extent | None  # None: no file, or not told
    text: str
    is_cut: bool  # what is shown here of the text, not what came back


@dataclass(frozen=True)
class LeftFile:
    """A file that was known before a compaction and of which nothing came back."""

    path: str
    age_seconds: int | None


@dataclass(frozen=True)
class RestoredThings:
    """`items` is None where this client version does not write them down. Of files that did not come back the newest
    are named, to who may read them."""

    items: tuple[RestoredView, ...] | None
    left_files: tuple[LeftFile, ...] = ()
    left_count: int = 0


def read_restored(compaction: ObservedCompaction, entries: Sequence[Entry], sides: Sides | None) -> RestoredThings:
    """Without entries, which are content, only kinds and tokens are told."""
    if compaction.restored is None:
        return RestoredThings(None)
    lines = {entry.uuid: entry for entry in entries}
    before = _read_files(sides.before) if entries and sides else {}
    after = _read_files(sides.after) if entries and sides else {}
    ages = {path: _find_age(file, compaction.at) for path, file in before.items()}
    left = [LeftFile(path, age) for path, age in ages.items() if path not in after]
    items = tuple(_view_restored(told, lines, ages) for told in compaction.restored)
    return RestoredThings(items, tuple(left[:MOST_LEFT_FILES]), len(left))


def _read_files(entries: Sequence[Entry]) -> dict[str, TouchedFile]:
    """By path, the most recent first."""
    return {file.path: file for file in read_touched_files(entries, read_activity(entries))}


def _find_age(file: TouchedFile, at: datetime | None) -> int | None:
    """Seconds from when it was last touched to the compaction."""
    return None if at is None or file.seen_at is None else max(0, int((at - file.seen_at).total_seconds()))


def _view_restored(
    told: Mapping[str, object], lines: Mapping[str | None, Entry], ages: Mapping[str, int | None]
) -> RestoredView:
    entry = lines.get(str(told["entry"]))
    name = str(told["name"]) if entry is not None else ""
    text = render_attachment(entry) if entry is not None else ""
    named = Extent.NAMED if told["kind"] == AttachmentKind.FILE_NAMED else None
    return RestoredView(
        kind=str(told["kind"]),
        entry_uuid=str(told["entry"]) if entry is not None else "",
        name=name,
        tokens=int(str(told["tokens"])),
        age_seconds=next(
            (age for path, age in ages.items() if name and (path == name or path.endswith(f"/{name}"))), None
        ),
        extent=named if entry is None else classify_extent(entry),
        text=text[:LONGEST_ATTACHMENT],
        is_cut=len(text) > LONGEST_ATTACHMENT,
    )
