"""A storm over an installation with PostgreSQL and Redis, two web processes and two workers.

A minute in every run of the suite; PLIMSOLL_TEST_STORM_SECONDS=600 for the long form.
"""

import json
import os
import time
from pathlib import Path

import pytest

from dashboard.ingest.intake import OTHER_ACCOUNT
from tests.dashboard.ingest.conversation import make_conversation
from tests.dashboard.running import run_plimsoll
from tests.faults.brokers import RedisBroker
from tests.faults.installation import Installation
from tests.faults.storm import FORGED, FORGED_LINES, ServerDatabase, Storm
from tests.services import find_postgresql, find_redis, scratch_postgresql

SECONDS = float(os.environ.get("PLIMSOLL_TEST_STORM_SECONDS", "60"))
SEED = int(os.environ.get("PLIMSOLL_TEST_STORM_SEED", "13"))
STRIKE_EVERY_SECONDS = 4.0
EXPECTED_STATUSES = {
    "transcripts": {0, 200, 429, 503},
    "OTLP": {0, 200, 429, 503},
    "proxy": {0, 200, 502, 503, 504},
    "sessions": {0, 200, 429, 503},
    "runs": {0, 201, 409, 429, 503},
    "mallory": {0, 200, 429, 503},
    "probe": {0, 200},
}


@pytest.mark.skipif(find_postgresql() is None or find_redis() is None, reason="needs PostgreSQL and Redis")
def test_storm_loses_nothing(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with scratch_postgresql(is_durable=True) as server:
        broker = RedisBroker(tmp_path)
        installation = Installation("storm", tmp_path, ServerDatabase(server), broker)
        try:
            made = run_plimsoll(tmp_path, "migrate", "-v", "0", **installation.database.settings)
            assert made.returncode == 0, made.stderr
            keys = json.loads(installation.run_module("tests.faults.storm_accounts"))
            storm = Storm(installation, server, keys, SEED)
            try:
                storm.await_calm(seconds=60)
                ends_at = time.monotonic() + SECONDS
                with storm.people():
                    while time.monotonic() < ends_at and not storm.errors:
                        time.sleep(STRIKE_EVERY_SECONDS)
                        storm.strike()
                storm.await_calm(seconds=60)
                report = judge(storm)
            finally:
                storm.close()
        finally:
            installation.close()
            broker.close()
    request.node.user_properties.append(("faults", report))


def judge(storm: Storm) -> str:
    """Hold the database against what clients were told; returns the figures."""
    assert not storm.errors
    told = storm.told
    for client, expected in EXPECTED_STATUSES.items():
        assert set(told.statuses.get(client, {})) <= expected, (client, told.statuses)
    stored = dict(
        storm.rows(
            "SELECT s.external_id, SUM(g.entry_count) FROM dashboard_agentsession s "
            "JOIN dashboard_entrysegment g ON g.session_id = s.id GROUP BY s.external_id"
        )
    )
    whole = len(make_conversation("whole").lines)
    lost = sum(max(0, lines - int(stored.get(name, 0))) for name, lines in told.lines.items())
    doubled = sum(max(0, int(stored[name]) - whole) for name in told.finished)
    calls = [name for (name,) in storm.rows("SELECT call_id FROM dashboard_apicall WHERE is_counted")]
    lost_spans = len(told.spans - set(calls))
    doubled_calls = len(calls) - len(set(calls))
    unrecorded = len(storm.list_unrecorded())
    dropped = int(storm.rows("SELECT COALESCE(SUM(count), 0) FROM dashboard_drop WHERE source = 'proxy'")[0][0])
    forged = sum(name.startswith(FORGED) for name in calls)
    refused_lines = storm.rows(f"SELECT COALESCE(SUM(count), 0) FROM dashboard_drop WHERE reason = '{OTHER_ACCOUNT}'")
    sent_lines = FORGED_LINES * told.statuses["mallory"].get(200, 0)
    owners = storm.rows(
        "SELECT DISTINCT u.username FROM dashboard_agentsession s LEFT JOIN dashboard_user u ON u.id = s.owner_id"
    )
    revisions = storm.rows("SELECT run_id, COUNT(*) FROM dashboard_runrevision GROUP BY run_id HAVING COUNT(*) > 1")
    dead = storm.rows("SELECT kind, last_error FROM dashboard_job WHERE state = 'dead'")
    probes = sorted(told.probe_seconds)
    report = (
        f"storm {SECONDS:.0f} s, {len(storm.strikes)} strikes: "
        f"{sum(told.lines.values()):,} lines and {len(told.spans):,} OTLP calls acknowledged, "
        f"{lost + lost_spans} lost, {doubled + doubled_calls} doubled; "
        f"{len(told.passed):,} calls passed the proxy, {unrecorded} unrecorded, {dropped} counted as dropped; "
        f"{len(told.runs)} compactions, {len(revisions)} doubled, {len(dead)} dead; "
        f"{forged} of {sent_lines} forged lines taken, owners {[name for (name,) in owners]}; "
        f"probe p95 {probes[int(len(probes) * 0.95)]:.2f} s, slowest {probes[-1]:.2f} s; statuses {told.statuses}"
    )
    assert (lost, lost_spans, doubled, doubled_calls) == (0, 0, 0, 0), report
    assert (forged, owners, revisions, dead) == (0, [("ann",)], [], []), report
    assert int(refused_lines[0][0]) >= sent_lines, report  # an answer may be lost after they were counted
    assert unrecorded <= dropped, report
    return report
