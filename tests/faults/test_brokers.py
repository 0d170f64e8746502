"""A broker that loses everything it is given, and one that goes away and comes back."""

from tests.dashboard.running import wait_until
from tests.faults.figures import Figures
from tests.faults.installation import Installation


def test_every_message_dropped(installation: Installation, figures: Figures) -> None:
    """Whoever sends, sends into a void: deleting messages would race with a worker that waits for them."""
    installation.start("sweeper", **installation.broker.void)
    installation.start("worker")
    installation.open_console(**installation.broker.void)
    posted = installation.post("plain", 80, posters=2, seconds=0.02)
    installation.await_done(posted)
    figures.count(posted)
    assert (figures.lost, figures.doubled) == (0, 0)
    assert installation.broker.swallowed() >= 80


def test_broker_away_for_a_while(installation: Installation, figures: Figures) -> None:
    installation.start("sweeper")
    worker = installation.start("worker")
    before = installation.post("plain", 5)
    installation.await_done(before)
    installation.broker.take_away()
    meanwhile = installation.post("gated", 10)
    installation.open_gate()
    installation.await_done(meanwhile)
    installation.broker.bring_back()
    wait_until(lambda: installation.tell("wake") is True, seconds=30, what="a message sent")
    wait_until(lambda: installation.broker.waiting() == 0, seconds=60, what="messages heard again")
    afterwards = installation.post("tick", 5)
    installation.await_done(afterwards)
    figures.count([*before, *meanwhile, *afterwards])
    assert (figures.lost, figures.doubled) == (0, 0)
    assert worker.poll() is None
