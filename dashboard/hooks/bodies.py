"""What notices say: numbers, names and addresses, no words of a session."""

from datetime import datetime

from django.conf import settings

from dashboard.models import AgentSession, CompactionRun, LineCrossing
from dashboard.plain_json import spell_decimal


def describe_run(run: CompactionRun) -> dict[str, object]:
    return {
        "at": _write_time(run.finished_at),
        "session": _describe_session(run.session),
        "run": {
            "id": run.pk,
            "state": run.state,
            "kind": run.kind,
            "trigger": run.trigger,
            "agent": run.agent_id,
            "before_tokens": run.before_tokens,
            "after_tokens": run.after_tokens,
            "spent_usd": spell_decimal(run.spent_usd),
            "failure_code": run.failure_code,
            "failure": run.failure_sentence,
            "page": f"{settings.PUBLIC_URL}/runs/{run.pk}/",
            "url": f"{settings.PUBLIC_URL}/api/v1/runs/{run.pk}",
            "messages_url": f"{settings.PUBLIC_URL}/api/v1/runs/{run.pk}/messages",
        },
    }


def describe_crossing(crossing: LineCrossing) -> dict[str, object]:
    return {
        "at": _write_time(crossing.at),
        "session": _describe_session(crossing.session),
        "agent": crossing.agent_id,
        "used_tokens": crossing.used_tokens,
        "line_tokens": crossing.line_tokens,
        "answer": crossing.answer,
    }


def _describe_session(session: AgentSession) -> dict[str, object]:
    page = f"{settings.PUBLIC_URL}/sessions/{session.pk}/"
    return {"id": session.pk, "external_id": session.external_id, "page": page}


def _write_time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
