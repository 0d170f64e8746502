"""Many sweepers at once, and a clock that jumps under everything."""

from datetime import UTC, datetime
from functools import partial

from tests.dashboard.running import wait_until
from tests.faults.figures import Figures
from tests.faults.installation import Installation

HOUR = 3600


def test_three_sweepers(installation: Installation, figures: Figures) -> None:
    """A lost lease is returned once, and each turn of recurring work is posted once."""
    for _ in range(3):
        installation.start("sweeper", PLIMSOLL_TEST_TICKS="1")
    lost = installation.start("worker", PLIMSOLL_TEST_UNKNOWN_KINDS="tick")
    posted = installation.post("gated", 4)
    wait_until(lambda: len(installation.running_on(lost)) == 4, seconds=30, what="four jobs on the worker")
    lost.kill()
    lost.wait()
    installation.open_gate()
    figures.kills = 1
    installation.start("worker")
    installation.await_done(posted)

    def ticks() -> list[str]:
        return [job for job in installation.effects() if job.startswith("recurring:tick:")]

    wait_until(lambda: len(ticks()) >= 3, seconds=30, what="three turns of recurring work")
    figures.count([*posted, *ticks()])
    assert (figures.lost, figures.doubled) == (0, 0)
    # Claimed, returned, claimed: every one of these steps raises the fence by one, and none happened twice.
    assert {row.fence for row in installation.jobs(*posted)} == {3}


def test_clock_jumps(installation: Installation, figures: Figures) -> None:
    """An hour ahead, right again, an hour behind; four jobs run through it all, others come and go."""
    installation.start("sweeper")
    for _ in range(2):
        installation.start("worker")
    posted = [*installation.post("patient", 4), *installation.post("plain", 50, posters=2, seconds=0.2)]
    wait_until(lambda: installation.states()["running"] >= 4, seconds=30, what="running jobs")
    for offset in (HOUR, 0, -HOUR):
        installation.set_clock(offset)
        wait_until(partial(_swept_at, installation, offset), seconds=30, what="a round by the new clock")
    installation.open_gate()
    installation.await_done(posted)
    figures.count(posted)
    assert (figures.lost, figures.doubled) == (0, 0)


def _swept_at(installation: Installation, offset: int) -> bool:
    """The sweeper notes its rounds, and notes one at once where the last seems to lie ahead or far back."""
    ((noted,),) = installation.database.rows("SELECT at FROM dashboard_beat")
    at = noted if isinstance(noted, datetime) else datetime.fromisoformat(noted).replace(tzinfo=UTC)
    return abs((at - datetime.now(UTC)).total_seconds() - offset) < HOUR / 2
