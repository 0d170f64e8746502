"""Compactions that Plimsoll does: looked at first, started, watched, cancelled, their summaries edited."""

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Field, Query, Router, Schema, Status

from dashboard import access
from dashboard.access import Act, Actor
from dashboard.api.listing import MOST_ROWS
from dashboard.api.request import ApiRequest, acting_user
from dashboard.api.run_schemas import (
    PredictedLossesOut,
    RunDetailOut,
    RunIn,
    RunPreviewOut,
    RunRefusal,
    RunRevisionIn,
    RunRevisionOut,
    RunsOut,
)
from dashboard.api.schemas import Problem
from dashboard.ingest.audit_rows import parse_audit
from dashboard.models import AgentSession, CompactionRun, RunRevision, RunState
from dashboard.pages.content_state import find_content_state
from dashboard.pages.ledger import PAGE_SIZE
from dashboard.runs.choices import RunRefused
from dashboard.runs.endings import close_stranded, list_stranded
from dashboard.runs.failures import describe_failure
from dashboard.runs.missing_lines import DIFFERS
from dashboard.runs.outcomes import read_outcome
from dashboard.runs.predicted_losses import PredictedLosses, predict_losses
from dashboard.runs.preview import Preview, try_run
from dashboard.runs.revisions import revise_summary
from dashboard.runs.start import cancel_run, start_run

router = Router(tags=["runs"])
MAY_RUN = {403: Problem, 404: Problem, 409: RunRefusal, 422: Problem}

_SAME = (
    "id", "session_id", "agent_id", "kind", "summarizer", "model", "state", "stage", "stage_at", "written_tokens",
    "source", "created_at", "started_at", "finished_at", "before_tokens", "before_origin", "after_tokens",
    "after_origin", "line_tokens", "gap_count", "found_tokens", "accepts_difference", "kept_count", "summarised_count",
    "dropped_count", "cleared_count", "reserved_usd", "spent_usd",
)  # fmt: skip


class RunsAsked(Schema):
    before: int | None = Field(None, ge=1, description="`next` of the previous page.")
    limit: int = Field(PAGE_SIZE, ge=1, le=MOST_ROWS)


@router.post("/sessions/{int:session_id}/runs/preview", summary="Preview run", response={200: RunPreviewOut, **MAY_RUN})
def preview_session_run(request: ApiRequest, session_id: int, body: RunIn) -> dict[str, object]:
    """What a run would send, cost and lose, and the resulting context size. Nothing is started or billed."""
    session = _find_session(request, session_id, is_act=True)
    access.require_run(request.auth, session)
    tried = try_run(session, body.to_choices(), now=timezone.now())
    losses = predict_losses(tried, access.runs(request.auth).filter(team=session.team))
    reads_content = access.reads_content(request.auth, session)
    described = _describe_preview(tried.preview, reads_content=reads_content)
    return described | {"losses": losses and _describe_losses(losses, reads_content=reads_content)}


@router.post("/sessions/{int:session_id}/runs", summary="Start run", response={201: RunDetailOut, **MAY_RUN})
def start_session_run(request: ApiRequest, session_id: int, body: RunIn) -> Status[dict[str, object]]:
    """A worker starts it within a second; poll the run until its state is done, failed or cancelled."""
    session = _find_session(request, session_id, is_act=True)
    run = start_run(request.auth, session, body.to_choices(), source="api", now=timezone.now())
    return Status(201, _describe_run(request.auth, run))


@router.get(
    "/sessions/{int:session_id}/runs",
    summary="List runs of a session",
    response={200: RunsOut, 403: Problem, 404: Problem, 422: Problem},
)
def list_session_runs(request: ApiRequest, session_id: int, asked: Query[RunsAsked]) -> dict[str, object]:
    """Newest first."""
    session = _find_session(request, session_id)
    close_stranded(list_stranded().filter(session=session), now=timezone.now())
    runs = CompactionRun.objects.filter(session=session).defer("outcome", "details").order_by("-pk")
    runs = runs.prefetch_related("attempts")  # for what was kept of those that failed
    if asked.before is not None:
        runs = runs.filter(pk__lt=asked.before)
    found = list(runs[: asked.limit + 1])
    shown = found[: asked.limit]
    following = str(shown[-1].pk) if len(found) > asked.limit else None
    return {"items": [_describe_row(run) for run in shown], "next": following}


@router.get("/runs/{int:run_id}", summary="Get run", response={200: RunDetailOut, 403: Problem, 404: Problem})
def read_run(request: ApiRequest, run_id: int) -> dict[str, object]:
    """State, costs and result; text with content access."""
    return _describe_run(request.auth, _find_run(request, run_id))


@router.post("/runs/{int:run_id}/cancel", summary="Cancel run", response={200: RunDetailOut, **MAY_RUN})
def cancel_one_run(request: ApiRequest, run_id: int) -> dict[str, object]:
    """A queued run ends immediately, a running one within seconds."""
    run = _find_run(request, run_id, is_act=True)
    if not cancel_run(request.auth, run, now=timezone.now()):
        raise RunRefused("run_ended", "This run has already ended.")
    return _describe_run(request.auth, _find_run(request, run_id))


@router.post("/runs/{int:run_id}/revisions", summary="Edit run summary", response={201: RunRevisionOut, **MAY_RUN})
def revise_run_summary(request: ApiRequest, run_id: int, body: RunRevisionIn) -> Status[dict[str, object]]:
    """Saves a new version of the summary; earlier versions are kept. What it loses is recalculated."""
    run = _find_run(request, run_id, is_act=True)
    access.require_run(request.auth, run.session)
    revision = revise_summary(run, body.text, by=acting_user(request), now=timezone.now(), base_number=body.base_number)
    return Status(201, _describe_revision(revision, reads_content=access.reads_content(request.auth, run.session)))


def tell_refusal(refusal: RunRefused) -> dict[str, object]:
    advice = " Send `accept_difference`: true to confirm it." if refusal.code == DIFFERS else ""
    return {"detail": f"{refusal.sentence}{advice}", "code": refusal.code, "figures": refusal.figures}


def _find_session(request: ApiRequest, session_id: int, *, is_act: bool = False) -> AgentSession:
    return get_object_or_404(_list_sessions(request.auth, is_act=is_act).select_related("team"), pk=session_id)


def _find_run(request: ApiRequest, run_id: int, *, is_act: bool = False) -> CompactionRun:
    runs = CompactionRun.objects.filter(pk=run_id, session__in=_list_sessions(request.auth, is_act=is_act))
    close_stranded(list_stranded().filter(pk__in=runs), now=timezone.now())
    return get_object_or_404(runs.select_related("session", "session__team", "team", "job"))


def _list_sessions(actor: Actor, *, is_act: bool) -> QuerySet[AgentSession]:
    """What the actor sees. A key that may only run compactions sees what it may run, and one that may not is refused
    whatever the session."""
    act = Act.SEE
    if actor.key is not None and (is_act or not actor.may_anywhere(Act.SEE)):
        act = Act.RUN_OWN
    access.require_anywhere(actor, act)
    return access.sessions(actor, act)


def _describe_preview(preview: Preview, *, reads_content: bool) -> dict[str, object]:
    plain = {name: getattr(preview, name) for name in RunPreviewOut.model_fields if hasattr(preview, name)}
    return plain | {
        "kind": preview.choices.kind,
        "summarizer": preview.choices.summarizer,
        "expected_after_tokens": list(preview.expected_after_tokens) if preview.expected_after_tokens else None,
        "prompt": preview.prompt if reads_content else None,
    }


def _describe_losses(losses: PredictedLosses, *, reads_content: bool) -> dict[str, object]:
    plain = {name: getattr(losses, name) for name in PredictedLossesOut.model_fields}
    return plain | {"lost": losses.lost if reads_content else None}


def _describe_row(run: CompactionRun) -> dict[str, object]:
    failure = describe_failure(run) if run.state == RunState.FAILED else None
    return {name: getattr(run, name) for name in _SAME} | {
        "started_by": run.started_by_name,
        "again_of": run.again_of_id,
        "failure": failure
        and {
            "code": run.failure_code,
            "sentence": failure.sentence,
            "kept": failure.kept,
            "advice": failure.advice,
        },
    }


def _describe_run(actor: Actor, run: CompactionRun) -> dict[str, object]:
    reads_content = access.reads_content(actor, run.session)
    stored = read_outcome(run) if run.state == RunState.DONE and run.outcome is not None else None
    return _describe_row(run) | {
        "content": find_content_state(actor, run.session).value,
        "pivot_uuid": run.pivot_uuid,
        "instructions": run.instructions if reads_content else None,
        "fork_refusal": run.fork_refusal,
        "attempts": list(run.attempts.order_by("number")),
        "revisions": [
            _describe_revision(revision, reads_content=reads_content) for revision in run.revisions.order_by("number")
        ],
        "restored": [
            {
                "kind": item.kind,
                "name": item.name if reads_content else "",
                "tokens": item.tokens,
                "state": item.state,
                "reason": item.reason if reads_content else "",
                "entry_uuid": item.entry_uuid,
            }
            for item in (stored.restored if stored else ())
        ],
    }


def _describe_revision(revision: RunRevision, *, reads_content: bool) -> dict[str, object]:
    audit = parse_audit(revision.audit)
    return {
        "number": revision.number,
        "created_at": revision.created_at,
        "edited_by": revision.edited_by_name,
        "summary_tokens": revision.summary_tokens,
        "after_tokens": revision.after_tokens,
        "missing_sections": revision.missing_sections,
        "retained_percent": revision.retained_percent,
        "parts": audit.parts if audit else [],
        "lost_count": audit.lost_count if audit else 0,
        "lost": (audit.lost if audit else []) if reads_content else None,
        "text": revision.text if reads_content else None,
    }
