"""Workers that are killed, that sleep past their lease, that are poisoned, stopped in order or too old."""

import signal
import subprocess
import time

import pytest

from tests.dashboard.running import wait_until
from tests.faults.figures import IS_LONG, Figures
from tests.faults.installation import LEASE_SECONDS, Installation, JobRow

KILLS = {"SQLite, files": 20, "PostgreSQL, Redis": 20 if IS_LONG else 8}
ATTEMPTS = 5


def test_killed_again_and_again(installation: Installation, figures: Figures) -> None:
    installation.start("sweeper")
    workers = [installation.start("worker", PLIMSOLL_WORKER_THREADS="2") for _ in range(3)]
    posted = installation.post("plain", 150, posters=2, seconds=0.4)

    def may_be_hit(rows: list[JobRow]) -> bool:
        """Five lost workers make a job dead, and rightly: the killer spares those that come near."""
        return bool(rows) and all(row.attempts <= ATTEMPTS - 2 for row in rows)

    def kill_one() -> bool:
        for place, worker in enumerate(workers):
            assert worker.poll() is None, "a worker ended by itself"
            if may_be_hit(installation.running_on(worker)):
                worker.kill()
                worker.wait()
                workers[place] = installation.start("worker", PLIMSOLL_WORKER_THREADS="2")
                return True
        return False

    while figures.kills < KILLS[installation.name]:
        wait_until(kill_one, seconds=30, what="a worker with jobs")
        figures.kills += 1
    installation.await_done(posted)
    figures.count(posted)
    assert (figures.lost, figures.doubled) == (0, 0)
    assert max(row.attempts for row in installation.jobs()) > 1, "no kill hit a job"


def test_asleep_past_its_lease(installation: Installation, figures: Figures) -> None:
    installation.start("sweeper")
    sleeper = installation.start("worker")
    posted = installation.post("gated", 4)
    wait_until(lambda: len(installation.running_on(sleeper)) == 4, seconds=30, what="four jobs on the worker")
    installation.stop_in_its_tracks(sleeper)
    installation.open_gate()
    installation.start("worker")
    installation.await_done(posted)
    sleeper.send_signal(signal.SIGCONT)

    def rejected() -> int:
        return sum(row.fence_rejections for row in installation.jobs())

    wait_until(lambda: rejected() == 4, seconds=30, what="four refused writes")
    figures.count(posted)
    assert (figures.lost, figures.doubled) == (0, 0)
    assert installation.states() == {"done": 4}


def _stays_locked(installation: Installation) -> bool:
    """At three looks: a transaction of the sweeper is over by then."""
    for _ in range(3):
        if not installation.database.is_locked():
            return False
        time.sleep(0.2)
    return True


@pytest.mark.parametrize("installation", ["PostgreSQL, Redis"], indirect=True)
def test_asleep_with_a_transaction_open(installation: Installation, figures: Figures) -> None:
    """Its row is locked until it wakes: the sweeper must pass by and help the others. (SQLite has but one lock.)"""
    installation.start("sweeper")
    sleeper = installation.start("worker", PLIMSOLL_TEST_UNKNOWN_KINDS="patient")
    lost = installation.start("worker", PLIMSOLL_TEST_UNKNOWN_KINDS="gated_inside")
    held, others = installation.post("gated_inside", 1), installation.post("patient", 1)
    wait_until(lambda: len(installation.running_on(lost)) == 1, seconds=30, what="the job of the other worker")
    wait_until(lambda: _stays_locked(installation), seconds=30, what="a transaction that stays open")
    sleeper.send_signal(signal.SIGSTOP)
    lost.kill()
    figures.kills = 1
    installation.open_gate()
    installation.start("worker")
    installation.await_done(others)
    assert installation.states(*held) == {"running": 1}
    sleeper.send_signal(signal.SIGCONT)
    installation.await_done(held)
    figures.count([*held, *others])
    assert (figures.lost, figures.doubled) == (0, 0)


def test_poison(installation: Installation, figures: Figures) -> None:
    """One job kills every worker that touches it, one raises; a worker is always started anew.

    The job of four seconds is still running whenever the killer comes back: it must not die of its neighbour.
    """
    installation.start("sweeper")
    workers = [installation.start("worker")]
    poison = [*installation.post("kill_worker", 1, seconds=1), *installation.post("raise_error", 1)]
    posted = [*installation.post("tick", 1, seconds=4), *installation.post("plain", 40, seconds=0.05)]

    def keep_a_worker() -> None:
        if workers[-1].poll() is not None:
            workers.append(installation.start("worker"))

    def both_dead() -> bool:
        keep_a_worker()
        return installation.states(*poison) == {"dead": 2}

    wait_until(both_dead, seconds=60, what="both poison jobs dead")
    installation.await_done(posted, tend=keep_a_worker)
    figures.kills = len(workers) - 1
    figures.count(posted)
    assert (figures.lost, figures.doubled, figures.kills) == (0, 0, ATTEMPTS)
    assert installation.effects().keys() == set(posted)
    killer, raiser = installation.jobs(*poison)
    assert killer.attempts == raiser.attempts == ATTEMPTS
    assert killer.last_error == "The worker stopped 5 times during this job."
    assert raiser.last_error == "builtins.ZeroDivisionError"


def test_stopped_in_order(installation: Installation, figures: Figures) -> None:
    """Work that checks is given back and costs no attempt; work that does not check is waited for."""
    leaving = installation.start("worker")
    posted = [*installation.post("patient", 2), *installation.post("gated", 2)]
    wait_until(lambda: len(installation.running_on(leaving)) == 4, seconds=30, what="four jobs on the worker")
    leaving.terminate()
    wait_until(lambda: installation.states() == {"queued": 2, "running": 2}, seconds=30, what="two jobs given back")
    assert all(row.attempts == 0 for row in installation.jobs() if row.state == "queued")
    assert leaving.poll() is None
    installation.open_gate()
    assert leaving.wait(30) == 0
    assert installation.states() == {"queued": 2, "done": 2}
    installation.start("worker")
    installation.await_done(posted)
    figures.count(posted)
    assert (figures.lost, figures.doubled, figures.rejections) == (0, 0, 0)
    assert {row.attempts for row in installation.jobs()} == {1}


def test_cancelled_while_running(installation: Installation, figures: Figures) -> None:
    worker = installation.start("worker")
    kept, dropped = installation.post("patient", 2)
    wait_until(lambda: len(installation.running_on(worker)) == 2, seconds=30, what="both jobs on the worker")
    assert installation.tell("cancel", key=dropped) is True
    wait_until(lambda: installation.states(dropped) == {"cancelled": 1}, seconds=LEASE_SECONDS + 3, what="the cancel")
    installation.open_gate()
    installation.await_done([kept])
    figures.count([kept])
    assert installation.effects() == {kept: 1}
    assert installation.tell("cancel", key=kept) is False


def test_upgraded_with_jobs_waiting(installation: Installation, figures: Figures) -> None:
    """A worker that does not know a kind leaves it alone, and does everything else."""
    installation.start("sweeper")
    old = installation.start("worker", PLIMSOLL_TEST_UNKNOWN_KINDS="patient gated")
    new_kind = installation.post("patient", 5)
    known = installation.post("plain", 20)
    installation.open_gate()
    installation.await_done(known)
    wait_until(lambda: _woken(installation) == 5, seconds=30, what="wake-ups for the unknown kind")
    assert {(row.state, row.attempts) for row in installation.jobs(*new_kind)} == {("queued", 0)}
    upgrade(installation, old)
    installation.await_done(new_kind)
    figures.count([*new_kind, *known])
    assert (figures.lost, figures.doubled) == (0, 0)


def upgrade(installation: Installation, old: "subprocess.Popen[bytes]") -> None:
    old.terminate()
    assert old.wait(30) == 0
    installation.start("worker")


def _woken(installation: Installation) -> int:
    waiting = "SELECT 1 FROM dashboard_job WHERE state = 'queued' AND woken_at IS NOT NULL"
    return len(installation.database.rows(waiting))
