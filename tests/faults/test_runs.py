"""Compactions under attack: workers killed at every stage, cancels at every stage, twenty starts under one cap."""

import json
import time
from decimal import Decimal

from tests.dashboard.running import wait_until
from tests.faults.figures import Figures
from tests.faults.installation import Installation
from tests.faults.runs import DEATHS, WAITS

# Before the answer nothing was paid for; in flight, or behind it, a killed worker's request may have been.
PAID_TWICE = {"while the model writes", "after the answer", "validating", "restoring", "post-hooks"}
CANCEL_SECONDS = 10.0  # one until the worker hears of it; the rest is for a machine with ten times the work it can do


def test_killed_at_every_stage(installation: Installation, figures: Figures) -> None:
    """Each run ends its worker once, at its place; it is done in the end, once, and its money is settled."""
    deaths = installation.folder / "deaths"
    deaths.mkdir()
    told = installation.run_module("tests.faults.run_acts", "start", *(f"die at {place}" for place in DEATHS))
    runs: dict[str, int] = json.loads(told)
    installation.start("sweeper")
    settings = {"PLIMSOLL_WORKER_THREADS": "1", "PLIMSOLL_TEST_DEATHS": str(deaths)}
    workers = [installation.start("worker", **settings)]

    def all_done() -> bool:
        if workers[-1].poll() is not None:
            workers.append(installation.start("worker", **settings))
        return installation.database.rows("SELECT count(*) FROM dashboard_compactionrun WHERE state = 'done'") == [
            (len(DEATHS),)
        ]

    wait_until(all_done, seconds=180, what="every run done")
    wait_until(
        lambda: workers[-1].poll() is not None or len(list(deaths.iterdir())) == len(DEATHS),
        seconds=20,
        what="the last death",
    )
    figures.kills, figures.jobs = len(list(deaths.iterdir())), len(runs)
    figures.seconds = time.monotonic() - figures.began
    results = dict(
        installation.database.rows("SELECT run_id, count(*) FROM dashboard_runrevision GROUP BY run_id ORDER BY run_id")
    )
    figures.lost = len(set(runs.values()) - results.keys())
    figures.doubled = sum(results.values()) - len(results)
    assert (figures.kills, figures.lost, figures.doubled) == (len(DEATHS), 0, 0)
    attempts = dict(installation.database.rows("SELECT run_id, count(*) FROM dashboard_runattempt GROUP BY run_id"))
    for place in DEATHS:
        expected = 2 if place in PAID_TWICE or place == "in the last transaction" else 1
        assert attempts[runs[f"die at {place}"]] == expected, place
    ((reserved, spent),) = installation.database.rows("SELECT reserved_usd, spent_usd FROM dashboard_dayspend")
    rows = installation.database.rows("SELECT spent_usd, reserved_usd FROM dashboard_compactionrun")
    assert Decimal(str(reserved)) == sum(Decimal(str(row[1])) for row in rows) == 0
    assert abs(Decimal(str(spent)) - sum(Decimal(str(row[0])) for row in rows)) < Decimal("0.00000001")


def test_cancelled_at_every_stage(installation: Installation, figures: Figures) -> None:
    told = installation.run_module("tests.faults.run_acts", "start", *(f"wait at {place}" for place in WAITS))
    runs: dict[str, int] = json.loads(told)
    lease = {"PLIMSOLL_JOB_LEASE_SECONDS": "30"}  # none runs out here: only the cancel may end a run
    installation.start("sweeper", **lease)
    installation.start("worker", PLIMSOLL_WORKER_THREADS=str(len(WAITS)), **lease)

    def count(state: str) -> int:
        sql = f"SELECT count(*) FROM dashboard_compactionrun WHERE state = '{state}'"
        ((number,),) = installation.database.rows(sql)
        return int(number)

    wait_until(lambda: count("running") == len(WAITS), seconds=60, what="every run at its place")
    assert json.loads(installation.run_module("tests.faults.run_acts", "cancel_all")) == len(WAITS)
    wait_until(lambda: count("cancelled") == len(WAITS), seconds=20, what="every run cancelled")
    latencies = json.loads(installation.run_module("tests.faults.run_acts", "read_latencies"))
    figures.jobs, figures.seconds = len(runs), max(latencies)
    assert max(latencies) < CANCEL_SECONDS
    ((reserved,),) = installation.database.rows("SELECT reserved_usd FROM dashboard_dayspend")
    assert reserved == 0


def test_twenty_starts_under_one_cap(installation: Installation, figures: Figures) -> None:
    told = json.loads(installation.run_module("tests.faults.run_acts", "rush"))
    figures.jobs = told["started"] + told["cap_reached"]
    assert (told["started"], told["cap_reached"]) == (7, 13)
    assert Decimal(told["reserved_usd"]) <= Decimal(told["cap_usd"])
