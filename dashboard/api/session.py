"""One session: the values of its header, its calls; taking it away and deleting it."""

from dataclasses import asdict

from django.http import Http404, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Query, Router, Status

from compaction.context.forecast import Forecast, NotEnoughData
from dashboard import access
from dashboard.access import Act
from dashboard.accounts.refusals import Refused
from dashboard.api.request import ApiRequest, acting_user
from dashboard.api.schemas import PERSON_ONLY, Problem
from dashboard.api.session_schemas import CallOut, CallsAsked, CallsOut, SessionDetailOut
from dashboard.models import AgentSession
from dashboard.pages.session_call import explain_output
from dashboard.pages.session_calls import list_calls
from dashboard.pages.session_download import download_numbers, download_transcript
from dashboard.pages.session_page import Relative, SessionHeader, read_header
from dashboard.pages.session_runs import SessionRuns, look_at_runs
from dashboard.pages.session_settings import list_line_settings
from dashboard.pages.told_calls import ToldCall, tell_calls
from dashboard.retention.deletion import delete_session as delete

router = Router(tags=["sessions"])

_SAME = (
    "id", "external_id", "project", "project_path", "branch", "developer", "model", "client_version",
    "is_claude_code", "is_window_inferred", "sources", "started_at", "last_at", "ended_at", "warm_until",
    "context_tokens", "pending_tokens", "peak_tokens", "input_tokens", "read_tokens", "write_5m_tokens",
    "write_1h_tokens", "output_tokens", "client_cost_usd", "client_tokens", "unpriced_count", "call_count",
    "turn_count", "break_count", "rebuild_count", "compaction_count", "mid_task_count", "micro_count", "has_content",
    "content_removed_at", "reading_version",
)  # fmt: skip


@router.get("/sessions/{int:session_id}", summary="Get session", response={200: SessionDetailOut, 404: Problem})
def read_session(request: ApiRequest, session_id: int) -> dict[str, object]:
    """Its context level and thresholds, with formula and origin; its costs and counts."""
    session = _find_session(request, session_id)
    header = read_header(request.auth, session, now=timezone.now())
    return describe_session(header, look_at_runs(request.auth, session))


@router.get(
    "/sessions/{int:session_id}/calls", summary="List calls of a session", response={200: CallsOut, 404: Problem}
)
def read_session_calls(request: ApiRequest, session_id: int, asked: Query[CallsAsked]) -> dict[str, object]:
    """By thread, main conversation first, oldest call first; each call with its cost by kind and its cache result."""
    session = _find_session(request, session_id)
    found = list_calls(request.auth, session, agent=asked.agent, after=asked.after, limit=asked.limit)
    if found is None:
        raise Http404("Call not found in this session.")
    calls, following = found
    told = tell_calls(request.auth, session, calls)
    return {"calls": [_describe_call(each) for each in told], "next": following}


@router.get(
    "/sessions/{int:session_id}/transcript",
    summary="Download transcript",
    response={200: None, 403: Problem, 404: Problem, 409: Problem},
)
def download_session_transcript(request: ApiRequest, session_id: int) -> StreamingHttpResponse:
    """Exactly as stored, in order of arrival. 409 if no content is stored."""
    session = _find_session(request, session_id, Act.READ_OWN_CONTENT)
    access.require_content(request.auth, session)
    if not session.has_content:
        raise Refused("No content of this session is stored.")
    return download_transcript(session)


@router.get(
    "/sessions/{int:session_id}/numbers",
    summary="Download session metrics",
    response={200: None, 403: Problem, 404: Problem},
)
def download_session_numbers(request: ApiRequest, session_id: int) -> StreamingHttpResponse:
    """All stored metrics, without content."""
    return download_numbers(_find_session(request, session_id))


@router.delete(
    "/sessions/{int:session_id}",
    summary="Delete session",
    response={204: None, 403: Problem, 404: Problem},
    openapi_extra=PERSON_ONLY,
)
def delete_session(request: ApiRequest, session_id: int) -> Status[None]:
    """Deletes the session and everything derived from it. It is not imported again until an admin allows it."""
    session = _find_session(request, session_id, Act.MANAGE)
    access.require_team(request.auth, session.team.slug, Act.MANAGE)
    delete(session, by=acting_user(request), now=timezone.now())
    return Status(204, None)


def _find_session(request: ApiRequest, session_id: int, act: Act = Act.SEE) -> AgentSession:
    """A key without the right is refused whatever the session; people see the sessions of their teams."""
    access.require_anywhere(request.auth, act if request.auth.key else Act.SEE)
    return get_object_or_404(access.sessions(request.auth).select_related("team"), pk=session_id)


def describe_session(header: SessionHeader, own: SessionRuns) -> dict[str, object]:
    session, standing, lineage = header.session, header.standing, header.lineage
    lines, forecast = standing.lines, standing.forecast
    return {name: getattr(session, name) for name in _SAME} | {
        "team": session.team.slug,
        "title": session.title if header.reads_content else None,
        "forked_from": _describe_relative(lineage.origin) if lineage.origin else None,
        "forks": [_describe_relative(fork) for fork in lineage.forks],
        "state": header.state,
        "window_tokens": lines.window.tokens if lines else None,
        "level": standing.reading.level.value,
        "percent_left": standing.reading.percent_left,
        "is_soon": standing.bar.is_soon,
        "context_provenance": "estimated" if standing.bar.is_estimated else standing.bar.provenance,
        "policy_version": standing.settings.version,
        "lines": [asdict(line) for line in list_line_settings(lines)] if lines else [],
        "auto_state": lines.auto_state.value if lines else None,
        "remarks": list(lines.remarks) if lines else [],
        "forecast": asdict(forecast) if isinstance(forecast, Forecast) else None,
        "forecast_reason": forecast.sentence if isinstance(forecast, NotEnoughData) else "",
        "next_prompt": standing.next_prompt,
        "hit_rate": header.hit_rate,
        "spent_usd": header.spent_usd,
        "lost_usd": None if header.is_price_unknown else session.lost_usd,
        "avoidable_usd": None if header.is_price_unknown else session.avoidable_usd,
        "sub_agent_count": header.sub_agent_count,
        "failed_compaction_count": own.failed_count,
        "run_count": own.run_count,
    }


def _describe_call(told: ToldCall) -> dict[str, object]:
    own = {name: getattr(told.call, name) for name in CallOut.model_fields if hasattr(told.call, name)}
    return own | {
        "verdict": told.verdict,
        "prices": told.prices,
        "next_prompt": told.next_prompt,
        "output_estimate": explain_output(told.call),
    }


def _describe_relative(relative: Relative) -> dict[str, object]:
    return {"external_id": relative.name, "id": relative.pk}
