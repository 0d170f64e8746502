"""A process that writes or reads sessions as fast as it can for some seconds, then tells what it did, as JSON.

`python -m tests.faults.writer write 3 10`: writer 3, ten seconds. Its times are told, judged elsewhere.
"""

import json
import sys
import time

import django

django.setup()

from django.db import DatabaseError  # noqa: E402

from dashboard.accounts.local import ensure_local_owner  # noqa: E402
from dashboard.ingest.intake import Origin, take_in  # noqa: E402
from dashboard.ingest.observed import Piece  # noqa: E402
from dashboard.models import AgentSession, ApiCall, Team  # noqa: E402
from tests.dashboard.ingest.conversation import make_conversation  # noqa: E402


def main(what: str, name: str, seconds: str) -> None:
    owner = ensure_local_owner()
    origin = Origin(Team.objects.get(is_local=True), owner, "import")
    took: list[float] = []
    errors: list[str] = []
    ends_at = None  # the first round also loads what writing needs: time counts from its end
    while ends_at is None or time.monotonic() < ends_at:
        began = time.monotonic()
        try:
            _write(origin, f"{name}-{len(took)}") if what == "write" else _read()
        except DatabaseError as error:
            errors.append(str(error))
        took.append(time.monotonic() - began)
        ends_at = ends_at or time.monotonic() + float(seconds)
    sys.stdout.write(json.dumps({"took_seconds": took, "errors": errors}) + "\n")


def _write(origin: Origin, name: str) -> None:
    talk = make_conversation(name)
    take_in(origin, Piece(talk.data, name, talk.session_id))


def _read() -> None:
    list(AgentSession.objects.order_by("-last_at")[:50])
    ApiCall.objects.count()


if __name__ == "__main__":
    main(*sys.argv[1:])
