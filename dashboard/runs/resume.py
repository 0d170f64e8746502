"""Ways out of a finished run: a new transcript to download or to write beside the original, or plain messages."""

import hmac
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from uuid import UUID, uuid4

from django.conf import settings

from compaction.compactors.outcome import EntryFate
from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.flatten import flatten
from dashboard.models import AgentSession, CompactionRun, ResumedFile, RunState, User
from dashboard.runs.choices import RunRefused
from dashboard.runs.original_lines import Originals, read_originals
from dashboard.runs.outcomes import StoredOutcome, read_outcome
from dashboard.runs.resumed_files import note_download, require_writable, write_resumed_file
from dashboard.runs.resumed_transcript import ResumedSession, make_transcript
from dashboard.runs.watched_places import WatchedPlace

NOT_OWN = "Only the person whose session it is gets its lines as the client wrote them."
NOT_DONE = "This run has no result, so there is nothing to resume."


@dataclass(frozen=True, kw_only=True)
class Resumable:
    """A transcript that the client can resume."""

    external_id: str
    data: bytes
    revision_number: int

    @property
    def file_name(self) -> str:
        return f"{self.external_id}.jsonl"


def download_resumed(
    run: CompactionRun, revision_number: int | None, *, by: User | None, now: datetime, with_secrets: bool = False
) -> Resumable:
    """The same session id however often it is asked for. `with_secrets`: kept lines as the client wrote them, for the
    person whose session it is; everybody else gets what is stored. Raises RunRefused."""
    outcome = _read_done(run, revision_number)
    originals = read_originals(run.session, run.agent_id) if with_secrets else Originals(refusal=NOT_OWN)
    made = _make(run, outcome, originals, external_id=_derive_id(run, _number(outcome)))
    note_download(run, made.external_id, made.data, revision_number=made.revision_number, by=by, now=now)
    return made


def write_beside(run: CompactionRun, revision_number: int | None, *, by: User | None, now: datetime) -> ResumedFile:
    """A new file in the folder of the original, under an id of its own. Raises RunRefused."""
    outcome = _read_done(run, revision_number)
    originals = read_originals(run.session, run.agent_id)
    if originals.place is None:
        raise RunRefused("no_original", f"{originals.refusal} Download the transcript instead.")
    place = _find_target(originals.place, run.agent_id)
    made = _make(run, outcome, originals, external_id=str(uuid4()))
    return write_resumed_file(
        run, place.beside(made.file_name), made.data, revision_number=made.revision_number, by=by, now=now
    )


def require_write_beside(session: AgentSession, agent_id: str = "") -> None:
    """Raise RunRefused where `write_beside` could not write a result of this session."""
    originals = read_originals(session, agent_id)
    if originals.place is None:
        raise RunRefused("no_original", originals.refusal)
    require_writable(_find_target(originals.place, agent_id))


def _find_target(place: WatchedPlace, agent_id: str) -> WatchedPlace:
    """Return the file to write beside. For a sub-agent the session's own: the client looks for sessions only there."""
    return place.climb(2) if agent_id else place


def read_messages(run: CompactionRun, revision_number: int | None) -> list[dict[str, object]]:
    """The compacted conversation as the Messages API takes it, a block that it signed first. Raises RunRefused."""
    outcome = _read_done(run, revision_number)
    context = slice_context(follow_chain(outcome.signed_entries))
    return [message.to_api() for message in flatten(context.entries)]


def _read_done(run: CompactionRun, revision_number: int | None) -> StoredOutcome:
    if run.state != RunState.DONE:
        raise RunRefused("no_result", NOT_DONE)
    return read_outcome(run, revision_number)


def _make(run: CompactionRun, outcome: StoredOutcome, originals: Originals, *, external_id: str) -> Resumable:
    session = ResumedSession(
        external_id=external_id,
        entries=outcome.entries,
        added_uuids=frozenset((*outcome.list_uuids(EntryFate.ADDED), outcome.boundary_uuid)),
        now=run.finished_at or run.created_at,
        originals=originals.entries,
        cwd=_find_cwd(run, originals),
    )
    return Resumable(
        external_id=external_id,
        data=make_transcript(session),
        revision_number=_number(outcome),
    )


def _number(outcome: StoredOutcome) -> int:
    return outcome.revision.number if outcome.revision else 0


def _find_cwd(run: CompactionRun, originals: Originals) -> str:
    """Where the client was started: it looks for the session in the folder that is named after it."""
    started = (entry.cwd for entry in originals.entries.values() if entry.cwd)
    return next(started, run.session.project_path)


def _derive_id(run: CompactionRun, revision_number: int) -> str:
    told = f"resumed session of run {run.pk}, revision {revision_number}"
    return str(UUID(bytes=hmac.digest(settings.SECRET_KEY.encode(), told.encode(), sha256)[:16], version=4))
