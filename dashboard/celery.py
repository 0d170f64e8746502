"""The Celery application: it carries wake-ups for dashboard.jobs, nothing else."""

import os

from celery import Celery
from django.conf import settings
from kombu.exceptions import OperationalError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

WAKE_TASK = "plimsoll.wake"
QUEUE = "plimsoll"


def make_app() -> Celery:
    app = Celery("plimsoll", broker=settings.BROKER_URL, set_as_current=False)
    app.conf.update(
        task_default_queue=QUEUE,
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_connection_timeout=2,
        broker_transport_options=transport_options(),
        imports=["dashboard.jobs.task"],
    )
    return app


def transport_options() -> dict[str, object]:
    """The broker without a server: one file per message in the data folder, which nobody else can read."""
    if not settings.BROKER_URL.startswith("filesystem://"):
        return {"socket_connect_timeout": 2, "socket_timeout": 5, "retry_on_timeout": False}
    for folder in ("queue", "control"):
        (settings.BROKER_FOLDER / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    return {
        "data_folder_in": str(settings.BROKER_FOLDER / "queue"),
        "data_folder_out": str(settings.BROKER_FOLDER / "queue"),
        "control_folder": str(settings.BROKER_FOLDER / "control"),
        "store_processed": False,
        "polling_interval": 0.2,
    }


def send_wake_up(job_id: int) -> None:
    """Raises OSError when the broker cannot be reached."""
    try:
        app.send_task(WAKE_TASK, args=[job_id], ignore_result=True, retry=False)
    except OperationalError as error:
        raise ConnectionError(str(error)) from error


app = make_app()
