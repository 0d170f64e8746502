"""When a recurring process last did its round, for the health page."""

import socket
from datetime import datetime, timedelta

from django.db.models import Q

from dashboard.models import Beat

BEAT_EVERY_SECONDS = 5


def note_beat(process: str, now: datetime) -> None:
    """One row per process and host; written only when it is stale, or ahead because the clock was set back."""
    name = f"{process} {socket.gethostname()}"[:120]
    stale = Q(at__lt=now - timedelta(seconds=BEAT_EVERY_SECONDS)) | Q(at__gt=now)
    if not Beat.objects.filter(stale, name=name).update(at=now):
        Beat.objects.get_or_create(name=name, defaults={"at": now})
