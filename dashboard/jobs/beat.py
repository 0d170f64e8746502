"""When a recurring process last did its round, for the health page."""

import socket
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q, QuerySet

from dashboard.models import Beat

BEAT_EVERY_SECONDS = 5
# A process that has been away for longer was moved to another host, as far as this host is concerned.
OWN_FOR = timedelta(hours=1)
HOST_NAME_LENGTH = 60


def note_beat(process: str, now: datetime) -> None:
    """One row per process and host; written only when it is stale, or ahead because the clock was set back."""
    name = _name_beat(process)
    stale = Q(at__lt=now - timedelta(seconds=BEAT_EVERY_SECONDS)) | Q(at__gt=now)
    if not Beat.objects.filter(stale, name=name).update(at=now):
        Beat.objects.get_or_create(name=name, defaults={"at": now})


def find_own_beat(process: str, now: datetime) -> datetime | None:
    """Return when this host's process last did its round, None when it does not run here."""
    return _read_newest(Beat.objects.filter(name=_name_beat(process), at__gt=now - OWN_FOR))


def find_newest_beat(process: str) -> datetime | None:
    """Return when the process last did its round on any host."""
    return _read_newest(Beat.objects.filter(name__startswith=f"{process} "))


def _read_newest(beats: QuerySet[Beat]) -> datetime | None:
    return beats.order_by("-at").values_list("at", flat=True).first()


def _name_beat(process: str) -> str:
    """Equal host names (containers, clones) and equal data folders (copies, shared disks) are each not enough."""
    return f"{process} {socket.gethostname()[:HOST_NAME_LENGTH]} {settings.HOST_ID}"
