"""The worker's side of a notice, job kind "deliver_notice": sent outside of transactions, again until it is taken."""

from collections.abc import Mapping
from datetime import timedelta

from django.utils import timezone

from dashboard.hooks.bodies import describe_crossing, describe_run
from dashboard.hooks.sending import Reply, SendFailed
from dashboard.hooks.webhooks import note_failed, note_taken, start_event
from dashboard.jobs.run import AttemptFailed, JobFailed, JobRun
from dashboard.models import CompactionRun, LineCrossing, RunCallback, Webhook

PAUSES = (timedelta(seconds=10), timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=30))
CALLBACK = "RunEnded"
TEST = "Test"


def deliver_notice(job: JobRun) -> None:
    row, body = _find_row(job.payload), _write_body(job.payload)
    if row is None or body is None:
        return  # it was removed or switched off, or what it is about was deleted
    event = str(job.payload.get("event", CALLBACK))
    team = row.team if isinstance(row, Webhook) else row.run.team
    try:
        reply = start_event(row, team, body, event=event, event_id=f"evt_{job.claim.job.pk}").wait()
    except SendFailed as failure:
        with job.writing():
            note_failed(row, failure, event=event, now=timezone.now())
        if failure.is_refused:
            raise JobFailed(str(failure)) from failure
        raise AttemptFailed(str(failure), pause=PAUSES[min(job.claim.job.attempts, len(PAUSES)) - 1]) from failure
    with job.finishing() as told:
        note_taken(row, event=event, status=reply.status, now=timezone.now())
        told["status"] = reply.status


def send_test(webhook: Webhook) -> Reply:
    """One try, at once, for whoever has just set it up. Raises SendFailed."""
    now = timezone.now()
    body = {"message": "This is a test event.", "at": now.isoformat()}
    try:
        event_id = f"test_{int(now.timestamp())}"
        reply = start_event(webhook, webhook.team, body, event=TEST, event_id=event_id).wait()
    except SendFailed as failure:
        note_failed(webhook, failure, event=TEST, now=now)
        raise
    note_taken(webhook, event=TEST, status=reply.status, now=now)
    return reply


def _find_row(payload: Mapping[str, object]) -> Webhook | RunCallback | None:
    if "callback" in payload:
        callbacks = RunCallback.objects.select_related("run", "run__team", "run__session")
        return callbacks.filter(pk=_read_pk(payload, "callback")).first()
    webhooks = Webhook.objects.select_related("team").filter(is_active=True)
    return webhooks.filter(pk=_read_pk(payload, "webhook")).first()


def _write_body(payload: Mapping[str, object]) -> dict[str, object] | None:
    if "crossing" in payload:
        crossings = LineCrossing.objects.select_related("session")
        crossing = crossings.filter(pk=_read_pk(payload, "crossing")).first()
        return describe_crossing(crossing) if crossing else None
    runs = CompactionRun.objects.select_related("session").defer("outcome", "details")
    chosen = (
        runs.filter(callback=_read_pk(payload, "callback"))
        if "callback" in payload
        else runs.filter(pk=_read_pk(payload, "run"))
    )
    run = chosen.first()
    return describe_run(run) if run else None


def _read_pk(payload: Mapping[str, object], name: str) -> int:
    return int(str(payload[name]))
