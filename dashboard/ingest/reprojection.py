"""Work sessions out again from their stored observations, after an upgrade or a change of their team's own prices."""

import logging

from django.db import InterfaceError, OperationalError
from django.db.models import F, Q

from dashboard.ingest.intake import project_again
from dashboard.ingest.picture.drawing import PROJECTION_VERSION
from dashboard.ingest.record import TooBusy
from dashboard.jobs.run import JobRun
from dashboard.models import AgentSession

BATCH = 100

log = logging.getLogger(__name__)


def project_sessions(run: JobRun) -> None:
    """The newest first. A session that others keep writing is left to them, or to the next round."""
    behind = AgentSession.objects.filter(
        Q(projection_version__lt=PROJECTION_VERSION) | ~Q(price_version=F("team__price_version"))
    )
    total, done, busy, failed = behind.count(), 0, 0, 0
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
            except (OperationalError, InterfaceError):
                raise  # the database is away: the job is tried again
            except Exception as error:  # noqa: BLE001 (one odd session must not keep all others from being updated)
                failed += 1
                log.error("session could not be updated", extra={"session": session.pk, "error": type(error).__name__})
            done += 1
            run.report(done=done, total=max(total, done))
        if len(batch) < BATCH:
            break
    with run.finishing() as result:
        result.update(sessions=done - busy - failed, busy=busy, failed=failed)
