"""Telling people's programs that something happened: posted as jobs in the transaction of their cause, sent later."""

from dashboard.hooks.webhooks import find_webhooks
from dashboard.jobs.post import JsonValue, post_job
from dashboard.models import CompactionRun, HookEvent, LineCrossing, RunCallback, RunState, Team

JOB_KIND = "deliver_notice"
_ENDS = {RunState.DONE: HookEvent.RUN_FINISHED, RunState.FAILED: HookEvent.RUN_FAILED}


def tell_end(run: CompactionRun) -> None:
    """A run has ended; `run` as it is now. To be called inside the transaction that ends it."""
    if (event := _ENDS.get(RunState(run.state))) is not None:
        _post(run.team, event, "run", run.pk)
    for callback in RunCallback.objects.filter(run=run):
        post_callback(run, callback)


def tell_crossing(crossing: LineCrossing) -> None:
    """To be called inside the transaction that notes it."""
    _post(crossing.team, HookEvent.LINE_CROSSED, "crossing", crossing.pk)


def post_callback(run: CompactionRun, callback: RunCallback) -> None:
    """Posting it twice is posting it once."""
    post_job(JOB_KIND, key=f"callback of run {run.pk}", team=run.team, payload={"callback": callback.pk})


def _post(team: Team, event: HookEvent, name: str, pk: int) -> None:
    for webhook in find_webhooks(team, event):
        payload: dict[str, JsonValue] = {"webhook": webhook.pk, "event": event.value, name: pk}
        post_job(JOB_KIND, key=f"webhook {webhook.pk} {event} {pk}", team=team, payload=payload)
