"""Transcripts from the browser: many files at once, a result for each; with scripts in parts, with progress."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import OperationalError
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import access
from dashboard.access import Act, Actor
from dashboard.ingest.bodies import BodyRefused
from dashboard.ingest.intake import Origin
from dashboard.ingest.record import TooBusy
from dashboard.ingest.transcript_folders import is_followed
from dashboard.ingest.uploads import NothingReadable, Upload, UploadResult, take_in_upload
from dashboard.models import Team
from dashboard.own_commands import spell_command
from dashboard.page_context import find_real_team
from dashboard.page_request import PageRequest
from dashboard.pages.gauges import name_session
from dashboard.views.team_page import signed_in

MOST_FILES = 500
TRY_AGAIN = "The database is busy or full. Lines imported so far are kept; upload the file again."
SKIPPED_OTHER = "Skipped: not a transcript (.jsonl file)."
SKIPPED_COMPRESSED = "Skipped: compressed. Decompress it and upload the .jsonl file."
_COMPRESSED_ENDINGS = (".gz", ".tgz", ".zip", ".zst", ".bz2", ".xz", ".7z")


@dataclass(frozen=True)
class UploadedSession:
    """A session that lines of a file belong to. Without calls there is nothing to see on its page yet."""

    url: str
    name: str
    call_count: int


@dataclass(frozen=True)
class FileResult:
    """One file: what became of it, or why nothing did."""

    name: str
    result: UploadResult | None = None
    refusal: str = ""
    status: int = HTTPStatus.OK
    is_skipped: bool = False  # by its name, without being read
    size_bytes: int = 0
    sessions: tuple[UploadedSession, ...] = ()

    @property
    def is_taken_in(self) -> bool:
        return self.result is not None and (self.result.new_line_count > 0 or not self.result.refused)


@require_http_methods(["GET", "HEAD", "POST"])
def upload(request: PageRequest) -> HttpResponse:
    access.require_anywhere(request.actor, Act.INGEST)
    teams = access.teams(request.actor, Act.INGEST)
    current = find_real_team(request, request.actor)
    context: dict[str, object] = {
        "teams": teams,
        "team": current if current in teams else teams[0],
        "import_command": spell_command("import", is_local=settings.LOCAL_MODE),
        "is_following": bool(settings.FOLLOW_ROOTS),
        "skipped_other": SKIPPED_OTHER,
        "skipped_compressed": SKIPPED_COMPRESSED,
        "compressed_endings": " ".join(_COMPRESSED_ENDINGS),
    }
    status = HTTPStatus.OK
    if request.method == "POST":
        origin = make_origin(request)
        files = request.FILES.getlist("file")
        results = _link_sessions(request.actor, [_take_in_chosen(origin, file) for file in files[:MOST_FILES]])
        context |= {"results": results, "summary": _summarize(results, chosen=len(files))}
        context |= {"team": origin.team, "left_out": max(0, len(files) - MOST_FILES), "is_empty": not files}
        status = HTTPStatus.OK if files else HTTPStatus.UNPROCESSABLE_ENTITY
    return render(request, "upload/page.html", context, status=status)


@require_POST
def upload_part(request: PageRequest) -> HttpResponse:
    """One part of one file; it ends where a line ends. `name` is the path inside the chosen folder."""
    origin = make_origin(request)
    file = request.FILES.get("file")
    if file is None:
        return JsonResponse({"detail": "The request contains no file."}, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    line = request.POST.get("line", "1")
    name = request.POST.get("name", "file")[:1000]
    found = take_in_file(origin, file.read(), name, line=int(line) if line.isdecimal() else 1)
    if found.result is None:
        response = JsonResponse({"detail": found.refusal}, status=found.status)
        if found.status == HTTPStatus.SERVICE_UNAVAILABLE:
            response["Retry-After"] = str(settings.RETRY_AFTER_SECONDS)
        return response
    sessions = list_uploaded_sessions(request.actor, _list_pks(found.result))
    links = [{"url": one.url, "name": one.name, "calls": one.call_count} for one in sessions.values()]
    return JsonResponse(spell_part(found.result) | {"session_links": links})


def list_uploaded_sessions(actor: Actor, pks: Iterable[int]) -> dict[int, UploadedSession]:
    """Return these sessions by their keys, in one query."""
    found = access.sessions(actor).filter(pk__in=set(pks)).select_related("team")
    return {
        session.pk: UploadedSession(
            reverse("session", args=[session.pk]), name_session(actor, session, session.team), session.call_count
        )
        for session in found
    }


def _link_sessions(actor: Actor, results: list[FileResult]) -> list[FileResult]:
    known = list_uploaded_sessions(actor, (pk for each in results for pk in _list_pks(each.result)))
    return [
        replace(each, sessions=tuple(known[pk] for pk in _list_pks(each.result) if pk in known)) for each in results
    ]


def _list_pks(result: UploadResult | None) -> list[int]:
    return [recorded.session_pk for recorded in result.sessions.values()] if result else []


def make_origin(request: PageRequest) -> Origin:
    access.require_anywhere(request.actor, Act.INGEST)
    return Origin(_find_team(request), signed_in(request), "upload")


def take_in_file(origin: Origin, data: bytes, name: str, *, line: int = 1) -> FileResult:
    try:
        result = take_in_upload(origin, Upload(name, data, first_line_number=line))
    except BodyRefused as refusal:
        return FileResult(name, refusal=str(refusal), status=refusal.status)
    except NothingReadable as refusal:
        return FileResult(name, refusal=str(refusal), status=HTTPStatus.UNPROCESSABLE_ENTITY)
    except (OperationalError, TooBusy):
        return FileResult(name, refusal=TRY_AGAIN, status=HTTPStatus.SERVICE_UNAVAILABLE)
    return FileResult(name, result)


def _take_in_chosen(origin: Origin, file: "UploadedFile[Any]") -> FileResult:
    """Skip files that are no transcripts by name, as the script of the page does."""
    name = file.name or "file"
    size = file.size or 0
    if is_followed(name):
        return replace(take_in_file(origin, file.read(), name), size_bytes=size)
    reason = SKIPPED_COMPRESSED if name.lower().endswith(_COMPRESSED_ENDINGS) else SKIPPED_OTHER
    return FileResult(name, refusal=reason, is_skipped=True, size_bytes=size)


def _summarize(results: list[FileResult], *, chosen: int) -> str:
    """Return the same sentence as the script of the page."""
    skipped = sum(each.is_skipped for each in results)
    failed = sum(not each.is_taken_in for each in results) - skipped
    parts = [f"{len(results) - skipped:,} of {chosen:,} file{'' if chosen == 1 else 's'}"]
    parts += [f"{failed:,} not imported"] if failed else []
    parts += [f"{skipped:,} skipped"] if skipped else []
    return ", ".join(parts)


def spell_part(result: UploadResult) -> dict[str, object]:
    return {
        "lines": result.line_count,
        "new_lines": result.new_line_count,
        "calls": result.new_call_count,
        "breaks": result.new_break_count,
        "redactions": result.redaction_count,
        "refused": result.refused,
        "problem_count": result.problem_count,
        "problems": [[problem.line_number, problem.reason] for problem in result.problems],
        "sessions": [recorded.session_pk for recorded in result.sessions.values()],
    }


def _find_team(request: PageRequest) -> Team:
    slug = request.POST.get("team", "")
    if slug:
        return access.require_team(request.actor, slug, Act.INGEST)
    return access.teams(request.actor, Act.INGEST)[0]
