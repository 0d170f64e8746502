"""Work sessions out again from their stored observations, after an upgrade or a change of their team's own prices."""

from django.db.models import F, Q

from dashboard.ingest.intake import project_again
from dashboard.ingest.picture.drawing import PROJECTION_VERSION
from dashboard.ingest.record import TooBusy
from dashboard.jobs.run import JobRun
from dashboard.models import AgentSession

BATCH = 100


def project_sessions(run: JobRun) -> None:
    """The newest first. A session that others keep writing is left to them, or to the next round."""
    behind = AgentSession.objects.filter(
        Q(projection_version__lt=PROJECTION_VERSION) | ~Q(price_version=F("team__price_version"))
    )
    total, done, busy = behind.count(), 0, 0
    before_pk = None
    while True:
        rest = behind if before_pk is None else behind.filter(pk__lt=before_pk)
        batch = list(rest.select_related("team", "owner").order_by("-pk")[:BATCH])
        for session in batch:
            run.check()
            before_pk = session.pk
            try:
                project_again(session)
            except TooBusy:
                busy += 1
            done += 1
            run.report(done=done, total=max(total, done))
        if len(batch) < BATCH:
            break
    with run.finishing() as result:
        result.update(sessions=done - busy, busy=busy)
