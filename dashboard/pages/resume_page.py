"""How a finished run is taken up: what can be downloaded or written, where from, and what was written before."""

import re
from dataclasses import dataclass

from dashboard import access
from dashboard.access import Actor
from dashboard.models import AgentSession, CompactionRun, ResumedFile, RunState
from dashboard.runs.client_commands import write_resume_command
from dashboard.runs.original_lines import count_redacted_lines, find_original
from dashboard.runs.resumed_files import look_at
from dashboard.runs.watched_places import FileState

MOST_WRITTEN = 20
_NOT_IN_FOLDERS = re.compile(r"[^A-Za-z0-9]")

STATE_WORDS = {
    FileState.UNCHANGED: "unchanged since it was saved",
    FileState.CONTINUED: "continued by the client",
    FileState.CHANGED: "changed since it was saved",
    FileState.MISSING: "no longer there",
    None: "not readable from here",
}


@dataclass(frozen=True)
class WrittenRow:
    """A transcript that was written beside the original. `session_pk`: the session it became, once it came in."""

    row: ResumedFile
    state: FileState | None
    words: str
    command: str
    session_pk: int | None

    @property
    def can_be_removed(self) -> bool:
        return self.state is FileState.UNCHANGED


@dataclass(frozen=True, kw_only=True)
class ResumeWays:
    """`write_refusal`: why it cannot be written beside the original, empty where it can. `redacted_count`: stored lines
    of the session that lost something, where kept lines have to be taken from there."""

    run: CompactionRun
    revision_number: int | None
    may_write: bool
    may_download: bool
    is_own: bool
    write_refusal: str
    redacted_count: int
    folder: str  # where the client looks for a downloaded transcript
    written: tuple[WrittenRow, ...] = ()


def read_resume_ways(actor: Actor, run: CompactionRun, revision_number: int | None = None) -> ResumeWays | None:
    """None while there is nothing to take up."""
    if run.state != RunState.DONE:
        return None
    session = run.session
    original = find_original(session, run.agent_id)
    return ResumeWays(
        run=run,
        revision_number=revision_number,
        may_write=access.may_run(actor, session),
        may_download=access.reads_content(actor, session),
        is_own=access.owns_session(actor, session),
        write_refusal=original.refusal,
        redacted_count=0 if original.place else count_redacted_lines(session),
        folder=name_project_folder(session.project_path),
        written=tuple(_list_written(run, session)) if access.may_run(actor, session) else (),
    )


def name_project_folder(project_path: str) -> str:
    """As the client names the folder of a project's sessions."""
    name = _NOT_IN_FOLDERS.sub("-", project_path)
    return f"~/.claude/projects/{name}" if name else "~/.claude/projects/<project>"


def _list_written(run: CompactionRun, session: AgentSession) -> list[WrittenRow]:
    rows = ResumedFile.objects.filter(run=run, removed_at=None).exclude(path="").order_by("-written_at")[:MOST_WRITTEN]
    names = [row.external_id for row in rows]
    came_in = AgentSession.objects.filter(team=session.team, external_id__in=names)
    by_name = dict(came_in.values_list("external_id", "pk"))
    written = []
    for row in rows:
        state = look_at(row)
        command = write_resume_command(session.project_path, row.external_id)
        written.append(WrittenRow(row, state, STATE_WORDS[state], command, by_name.get(row.external_id)))
    return written
