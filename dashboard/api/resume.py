"""Taking up a finished run from a program: transcript, plain messages, the file beside the original."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Field, Query, Router, Schema, Status

from dashboard import access
from dashboard.access import Act
from dashboard.api.request import ApiRequest
from dashboard.api.schemas import Input, Problem
from dashboard.models import CompactionRun
from dashboard.runs.client_commands import write_resume_command
from dashboard.runs.resume import download_resumed, read_messages, write_beside
from dashboard.runs.resumed_files import undo_resumed_file

router = Router(tags=["runs"])


class RevisionAsked(Schema):
    revision: int | None = Field(None, ge=1, le=10**9, description="Revision of the summary; default: the newest.")


class RevisionChosen(Input):
    revision: int | None = Field(None, ge=1, le=10**9, description="Revision of the summary; default: the newest.")


class MessagesOut(Schema):
    """The compacted conversation in Messages API format."""

    messages: list[dict[str, Any]]


class WrittenOut(Schema):
    id: int
    session: str = Field(description="Id of the new session, and the file name.")
    path: str
    size_bytes: int
    command: str = Field(description="Command that resumes it in the client.")


@router.get(
    "/runs/{int:run_id}/transcript",
    summary="Download run transcript",
    response={200: None, 403: Problem, 404: Problem, 409: Problem},
)
def read_run_transcript(request: ApiRequest, run_id: int, asked: Query[RevisionAsked]) -> HttpResponse:
    """A transcript for `claude --resume`, as JSON lines; its name is in Content-Disposition. The session id is the same
    for the same revision."""
    run = _find_readable(request, run_id)
    is_own = access.owns_session(request.auth, run.session)
    made = download_resumed(run, asked.revision, by=request.auth.user, now=timezone.now(), with_secrets=is_own)
    headers = {"Content-Disposition": f'attachment; filename="{made.file_name}"', "Cache-Control": "no-store"}
    return HttpResponse(made.data, content_type="application/x-ndjson", headers=headers)


@router.get(
    "/runs/{int:run_id}/messages",
    summary="Get run messages",
    response={200: MessagesOut, 403: Problem, 404: Problem, 409: Problem},
)
def read_run_messages(request: ApiRequest, run_id: int, asked: Query[RevisionAsked]) -> dict[str, object]:
    """For other agents: roles alternate, starting with the user, and each tool call is followed by its result."""
    return {"messages": read_messages(_find_readable(request, run_id), asked.revision)}


@router.post(
    "/runs/{int:run_id}/resume",
    summary="Save run as new session",
    response={201: WrittenOut, 403: Problem, 404: Problem, 409: Problem},
)
def write_run_transcript(request: ApiRequest, run_id: int, chosen: RevisionChosen) -> Status[dict[str, object]]:
    """Saves a new transcript next to the original, if Plimsoll runs on the machine of the session. The original is
    unchanged."""
    run = _find_run(request, run_id, Act.RUN_OWN)
    access.require_run(request.auth, run.session)
    row = write_beside(run, chosen.revision, by=request.auth.user, now=timezone.now())
    command = write_resume_command(run.session.project_path, row.external_id)
    told = {"id": row.pk, "session": row.external_id, "path": row.path, "size_bytes": row.size_bytes}
    return Status(201, told | {"command": command})


@router.delete(
    "/resumed/{int:resumed_id}",
    summary="Remove saved session",
    response={204: None, 403: Problem, 404: Problem, 409: Problem},
)
def undo_run_transcript(request: ApiRequest, resumed_id: int) -> Status[None]:
    """Removes the saved transcript and the session imported from it, if nothing was added to either since."""
    act = _find_act(request, Act.RUN_OWN)
    visible = access.resumed_files(request.auth, act).select_related("team", "origin", "origin__team")
    row = get_object_or_404(visible, pk=resumed_id)
    access.require_resumed(request.auth, row)
    undo_resumed_file(row, by=request.auth.user, now=timezone.now())
    return Status(204, None)


def _find_readable(request: ApiRequest, run_id: int) -> CompactionRun:
    run = _find_run(request, run_id, Act.READ_OWN_CONTENT)
    access.require_content(request.auth, run.session)
    return run


def _find_run(request: ApiRequest, run_id: int, act: Act) -> CompactionRun:
    visible = access.runs(request.auth, _find_act(request, act)).select_related("session", "session__team", "team")
    return get_object_or_404(visible, pk=run_id)


def _find_act(request: ApiRequest, act: Act) -> Act:
    """What opens the list: for a key its scope, whatever the run; people see the runs of their teams."""
    if request.auth.key is None:
        return Act.SEE
    access.require_anywhere(request.auth, act)
    return act
