"""The lines of a session as the client wrote them: read from the followed file itself, where it is on this machine.

Stored lines have lost their secrets; a session that goes on needs them. Nothing a transcript says decides what is
opened: only a file that was followed, inside a watched folder, still the one that was read.
"""

from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db.models import Sum

from compaction.transcripts.entries import Entry
from compaction.transcripts.transcript import read_transcript
from dashboard.ingest.followed_files import digest_path
from dashboard.ingest.transcripts import is_session_id
from dashboard.models import AgentSession, EntrySegment, FollowedFile
from dashboard.runs.watched_places import WatchedPlace, find_place, read_own_file

NOT_LOCAL = "Plimsoll does not run on the machine of this session."
NOT_FOLLOWED = "The session came in by upload, import or push: its file is in no folder that is followed here."
GONE = "The file of this session is gone."
ANOTHER = "The file of this session cannot be used: it is another one than was read, or no plain file of this user."
_SEVERAL = 5  # copies of a session's file that are looked at


@dataclass(frozen=True, kw_only=True)
class Originals:
    """Where the session's file is and what it holds. Without `place` there is none, and `refusal` says why."""

    place: WatchedPlace | None = None
    entries: dict[str, Entry] = field(default_factory=dict)
    refusal: str = ""


def find_original(session: AgentSession, agent_id: str = "") -> Originals:
    """Where it is, without reading it. The file may still turn out to be another one."""
    if not settings.LOCAL_MODE:
        return Originals(refusal=NOT_LOCAL)
    places = _list_places(session, agent_id)
    if not places:
        return Originals(refusal=NOT_FOLLOWED)
    row, place = places[0]
    return Originals(refusal=GONE) if row.gone_at is not None else Originals(place=place)


def read_originals(session: AgentSession, agent_id: str = "") -> Originals:
    """The lines by uuid, of the first file that is still the one that was read."""
    found = find_original(session, agent_id)
    if found.place is None:
        return found
    refusal = GONE
    for row, place in _list_places(session, agent_id):
        try:
            read = read_own_file(place)
        except FileNotFoundError:
            continue
        except OSError:
            refusal = ANOTHER
            continue
        if read.inode != int(row.inode):
            refusal = ANOTHER
            continue
        entries = read_transcript(read.data).entries
        return Originals(place=place, entries={entry.uuid: entry for entry in entries if entry.uuid})
    return Originals(refusal=refusal)


def count_redacted_lines(session: AgentSession) -> int:
    """Stored lines of the session in which something was taken out."""
    total: dict[str, Any] = EntrySegment.objects.filter(session=session).aggregate(lines=Sum("redacted_count"))
    return total["lines"] or 0


def _list_places(session: AgentSession, agent_id: str) -> list[tuple[FollowedFile, WatchedPlace]]:
    """Files that are there first, then by when they were read. The name of the file is the session's id."""
    if not is_session_id(session.external_id) or "\x00" in agent_id:  # no file can be called so
        return []
    name = f"/{session.external_id}.jsonl"
    if agent_id:
        name = f"/{session.external_id}/subagents/agent-{agent_id}.jsonl"
    rows = FollowedFile.objects.filter(team=session.team, path__endswith=name)
    places = []
    for row in sorted(rows, key=lambda row: (row.gone_at is not None, -row.read_at.timestamp()))[:_SEVERAL]:
        place = find_place(row.path, settings.FOLLOW_ROOTS)
        if place is not None and digest_path(row.path) == row.path_digest:  # a name that is no text is shown otherwise
            places.append((row, place))
    return places
