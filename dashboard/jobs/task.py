"""The one Celery task. It takes an id and nothing else, and even that is a hint: the claim decides what runs."""

from django.db import close_old_connections

from dashboard.celery import WAKE_TASK, app
from dashboard.jobs.perform import perform_due


@app.task(name=WAKE_TASK, ignore_result=True)  # type: ignore[untyped-decorator]
def wake(_job_id: int) -> None:
    close_old_connections()
    try:
        perform_due()
    finally:
        close_old_connections()
