"""Notes, answers to a crossed line and notices under attack: workers killed where the work is done and not yet told."""

import json
import time
from collections import Counter

from tests.dashboard.running import wait_until
from tests.fakes.raw_upstream import RawUpstream
from tests.faults.automation import PLACES
from tests.faults.figures import Figures
from tests.faults.installation import Installation


def test_automatic_work_killed(installation: Installation, figures: Figures) -> None:
    deaths = installation.folder / "deaths"
    deaths.mkdir()
    allowed = {"PLIMSOLL_WEBHOOK_PRIVATE": "allow", "PLIMSOLL_JOB_LEASE_SECONDS": "1"}
    settings = {**allowed, "PLIMSOLL_WORKER_THREADS": "1", "PLIMSOLL_TEST_DEATHS": str(deaths)}
    with RawUpstream() as receiver:
        installation.run_module("tests.faults.run_acts", "cross", f"{receiver.url}/in", **allowed)
        installation.start("sweeper", **allowed)
        workers = [installation.start("worker", **settings)]

        def all_done() -> bool:
            if workers[-1].poll() is not None:
                workers.append(installation.start("worker", **settings))
            states = installation.states()
            return len(list(deaths.iterdir())) == len(PLACES) and states.keys() == {"done"}

        wait_until(all_done, seconds=60, what="every job done, and every worker killed that was to be")
        notices = [json.loads(seen.body) for seen in receiver.requests]
    figures.kills, figures.jobs = len(workers) - 1, len(installation.jobs())
    figures.seconds = time.monotonic() - figures.began
    rows = installation.database.rows
    assert figures.kills == len(PLACES)
    assert rows("SELECT answer, refusal FROM dashboard_linecrossing WHERE run_id IS NOT NULL") == [("run", "")]
    assert rows("SELECT source, state FROM dashboard_compactionrun") == [("auto", "done")]
    assert rows("SELECT number, writer FROM dashboard_sessionnote") == [(1, "extractive")]
    # A notice that was sent and not noted is sent again, under its id: whoever takes it can tell.
    told = Counter(notice["id"] for notice in notices)
    assert sorted(told.values()) == [1, 2]
    assert {notice["event"] for notice in notices} == {"LineCrossed", "RunFinished"}
