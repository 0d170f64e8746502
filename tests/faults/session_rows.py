"""Everything stored about sessions, as JSON without the numbers a database gives: two databases can be compared.

With a folder as its argument, its transcripts are taken in first: each file once, in one piece.
"""

import json
import sys
from pathlib import Path
from typing import Any

import django

django.setup()

from django.db.models import Model, QuerySet  # noqa: E402

from compaction.transcripts.subagents import read_agent_meta  # noqa: E402
from dashboard.ingest.follow_delivery import IntakeDelivery  # noqa: E402
from dashboard.ingest.follower import find_origin  # noqa: E402
from dashboard.ingest.stored_lines import read_stored_lines  # noqa: E402
from dashboard.models import AgentSession, ApiCall, CacheBreak, ObservedCompaction, SessionHour, Thread  # noqa: E402

KINDS: tuple[type[Model], ...] = (AgentSession, Thread, SessionHour, ApiCall, CacheBreak, ObservedCompaction)
GIVEN = {"id", "version", "session_id", "team_id", "owner_id", "shape_id"}


def take_in_folder(folder: Path) -> None:
    origin = find_origin()
    assert origin
    delivery = IntakeDelivery(origin)
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.endswith(".jsonl"):
            delivery.take_lines(name, path.read_bytes(), first_line_number=1)
        elif name.endswith(".meta.json"):
            delivery.take_agent_meta(name, read_agent_meta(path.read_bytes()))


def describe_rows() -> dict[str, list[str]]:
    names = dict(AgentSession.objects.values_list("pk", "external_id"))
    told = {kind.__name__: _describe(kind._default_manager.all(), names) for kind in KINDS}
    lines = {
        session.external_id: sorted(read_stored_lines(session).facts) for session in AgentSession.objects.order_by("pk")
    }
    return {**told, "lines": sorted(f"{session} {line}" for session, ids in lines.items() for line in ids)}


def _describe(rows: "QuerySet[Any]", names: dict[int, str]) -> list[str]:
    described = []
    for row in rows.values():
        fields = {name: value for name, value in row.items() if name not in GIVEN}
        fields["session"] = names.get(row.get("session_id", 0))
        described.append(json.dumps(fields, sort_keys=True, default=str))
    return sorted(described)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        take_in_folder(Path(sys.argv[1]))
    sys.stdout.write(json.dumps(describe_rows()))
