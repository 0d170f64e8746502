"""Jobs inside one process: posting, claiming in order, leases, fences, ends. Real processes are in tests/faults."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from unittest.mock import patch

import pytest
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from dashboard.celery import app
from dashboard.jobs import perform, wake
from dashboard.jobs.claim import Claim, claim_next
from dashboard.jobs.control import cancel_job, retry_job
from dashboard.jobs.perform import perform_due
from dashboard.jobs.post import BACKGROUND, URGENT, post_job
from dashboard.jobs.run import JobFailed, JobRun, LeaseLost
from dashboard.jobs.sweep import sweep
from dashboard.models import Beat, Job, JobState, Team
from tests.builders import make_team
from tests.dashboard.running import wait_until

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 16, 12, 0, tzinfo=timezone.get_default_timezone())
DONE: list[int] = []


def note(run: JobRun) -> None:
    with run.finishing() as result:
        DONE.append(run.claim.job.pk)
        result["seen"] = len(DONE)


def refuse(run: JobRun) -> None:
    raise JobFailed("There is nothing to compact.")


def crash(run: JobRun) -> None:
    raise ValueError("secret content")


def notice_cancel(run: JobRun) -> None:
    Job.objects.filter(pk=run.claim.job.pk).update(cancel_requested_at=timezone.now())
    run.cancelled.set()
    run.check()


def lose_lease(run: JobRun) -> None:
    Job.objects.filter(pk=run.claim.job.pk).update(fence=99)
    with run.finishing():
        DONE.append(-1)


@pytest.fixture(autouse=True)
def kinds(settings: Settings) -> None:
    names = ("note", "refuse", "crash", "notice_cancel", "lose_lease")
    settings.JOB_KINDS = {name: (f"{__name__}.{name}", name) for name in names}
    settings.RECURRING_JOBS = {}
    DONE.clear()


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """What the broker was told; no broker is needed to test the truth."""
    told: list[int] = []
    monkeypatch.setattr(app, "send_task", lambda _name, args, **_options: told.append(args[0]))
    monkeypatch.setattr(wake, "_silent_until", 0.0)
    with ThreadPoolExecutor(1) as sending:  # ends with the test, so that no wake-up reaches the next one
        monkeypatch.setattr(wake, "_sending", sending)
        yield told


def claim(kinds: tuple[str, ...] = ("note",), now: datetime = NOW) -> Claim | None:
    return claim_next(worker="test", kinds=kinds, now=now)


def post(
    key: str, *, kind: str = "note", team: Team | None = None, priority: int = 50, due_at: datetime | None = None
) -> Job:
    return post_job(kind, key=key, team=team, priority=priority, due_at=due_at)


def claimed_keys(count: int) -> list[str]:
    taken = [claim() for _ in range(count)]
    return [each.job.key if each else "" for each in taken]


def test_posting_a_cause_twice_makes_one_job_and_one_wake_up(
    sent: list[int], django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        first, second = post("cause"), post("cause")
        assert sent == []
    assert first.pk == second.pk
    wait_until(lambda: sent == [first.pk], seconds=5, what="one wake-up")


def test_rolled_back_cause_leaves_no_job() -> None:
    with transaction.atomic():
        post("cause")
        transaction.set_rollback(True)
    assert not Job.objects.exists()


def test_broker_that_is_away_does_not_fail_the_cause(
    monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(app, "send_task", broken)
    with django_capture_on_commit_callbacks(execute=True):
        post("cause")
    assert Job.objects.get().state == JobState.QUEUED
    assert not wake.wake_workers(1)


def test_posting_does_not_wait_for_a_silent_broker(
    monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    speaks = threading.Event()
    monkeypatch.setattr(app, "send_task", lambda *_, **__: speaks.wait(30))
    began = time.monotonic()
    try:
        with django_capture_on_commit_callbacks(execute=True):
            post("cause")
        assert time.monotonic() - began < 10
    finally:
        speaks.set()


def test_urgent_goes_first_then_order_of_posting() -> None:
    for key, priority in (("slow", BACKGROUND), ("a", 50), ("b", 50), ("urgent", URGENT)):
        post(key, priority=priority)
    assert claimed_keys(5) == ["urgent", "a", "b", "slow", ""]


def test_background_jobs_leave_half_of_a_worker_to_others(settings: Settings) -> None:
    settings.WORKER_THREADS = 4
    for number in range(4):
        post_job("note", key=f"audit {number}", priority=BACKGROUND)
    names = [f"host:1:{thread}" for thread in range(4)]
    taken = [claim_next(worker=name, kinds=["note"], now=timezone.now()) for name in names]
    assert [claim is not None for claim in taken] == [True, True, False, False]
    wanted = post_job("note", key="asked by a person")
    claim = claim_next(worker=names[2], kinds=["note"], now=timezone.now())
    assert claim is not None
    assert claim.job == wanted
    assert claim_next(worker="host:2:1", kinds=["note"], now=timezone.now()) is not None


def test_teams_take_turns_however_many_jobs_one_posts() -> None:
    greedy, modest, new = (make_team(name) for name in ("Greedy", "Modest", "New"))
    for number in range(4):
        post(f"g{number}", team=greedy)
    post("m0", team=modest)
    post("n0", team=new)
    assert claimed_keys(6) == ["g0", "m0", "n0", "g1", "g2", "g3"]


def test_team_served_longest_ago_is_next_when_nothing_runs() -> None:
    one, two = make_team("One"), make_team("Two")
    for number in range(2):
        post(f"one{number}", team=one)
        post(f"two{number}", team=two)
    order = []
    for minute in range(4):
        taken = claim(now=NOW + timedelta(minutes=minute))
        assert taken
        taken.held().update(state=JobState.DONE, lease_until=None)
        order.append(taken.job.key)
    assert order == ["one0", "two0", "one1", "two1"]


def test_job_due_later_waits_and_unknown_kind_stays() -> None:
    post("later", due_at=NOW + timedelta(minutes=1))
    post("from the future", kind="brand_new")
    assert claim() is None
    assert claim(now=NOW + timedelta(minutes=1)) is not None
    assert Job.objects.get(kind="brand_new").state == JobState.QUEUED
    assert claim(kinds=("note", "brand_new")) is not None


def test_done_and_effects_are_one_transaction() -> None:
    post("cause")
    assert perform_due() == 1
    job = Job.objects.get()
    assert (job.state, job.result, job.lease_until, job.attempts) == (JobState.DONE, {"seen": 1}, None, 1)
    assert perform_due() == 0


def test_worker_with_an_old_fence_writes_nothing_and_is_counted() -> None:
    post("cause", kind="lose_lease")
    perform_due()
    job = Job.objects.get()
    assert DONE == []
    assert (job.state, job.fence, job.fence_rejections) == (JobState.RUNNING, 99, 1)


def test_orderly_failure_ends_at_once_with_its_words() -> None:
    post("cause", kind="refuse")
    perform_due()
    job = Job.objects.get()
    assert (job.state, job.attempts, job.last_error) == (JobState.FAILED, 1, "There is nothing to compact.")


def test_error_is_tried_again_later_and_dies_after_five(monkeypatch: pytest.MonkeyPatch) -> None:
    post("cause", kind="crash")
    pauses = []
    for _ in range(5):
        before = timezone.now()
        assert perform_due() == 1
        job = Job.objects.get()
        if job.due_at:
            pauses.append(round((job.due_at - before).total_seconds()))
        Job.objects.update(due_at=None)
    assert pauses == [2, 4, 8, 16]
    job = Job.objects.get()
    assert (job.state, job.attempts, job.last_error) == (JobState.DEAD, 5, "builtins.ValueError")


def test_cancelled_while_running_ends_cancelled() -> None:
    post("cause", kind="notice_cancel")
    perform_due()
    assert Job.objects.get().state == JobState.CANCELLED


def test_waiting_job_is_cancelled_and_tried_again_by_a_person(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks, sent: list[int]
) -> None:
    job = post("cause")
    assert cancel_job(job, now=NOW)
    assert not cancel_job(job, now=NOW)
    assert perform_due() == 0
    with django_capture_on_commit_callbacks(execute=True):
        assert retry_job(job)
    wait_until(lambda: sent == [job.pk], seconds=5, what="a wake-up")
    assert not retry_job(job)
    assert perform_due() == 1


def test_stopping_worker_gives_the_job_back_without_an_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    post("cause")
    taken = claim(now=timezone.now())
    assert taken
    stopping = threading.Event()
    stopping.set()
    monkeypatch.setattr(perform, "worker_stopping", stopping)

    def check(run: JobRun) -> None:
        run.check()

    with patch.object(perform, "load_work", return_value=check):
        perform.perform(taken)
    job = Job.objects.get()
    assert (job.state, job.attempts, job.worker) == (JobState.QUEUED, 0, "")


@pytest.mark.parametrize(
    ("moved", "returned"),
    [
        (timedelta(seconds=29), 0),
        (timedelta(seconds=31), 1),
        (timedelta(hours=5), 1),
        (-timedelta(seconds=20), 0),
        (-timedelta(hours=1), 1),  # the clock was set back: the lease lies further ahead than any lease goes
    ],
)
def test_lease_that_ran_out_or_cannot_be_is_returned(moved: timedelta, returned: int) -> None:
    post("cause")
    first = claim()
    assert first
    assert sweep(NOW + moved).returned == returned
    if returned:
        run = JobRun(first, threading.Event())
        with pytest.raises(LeaseLost), run.writing():
            DONE.append(-1)
        assert DONE == []


def test_worker_lost_five_times_makes_the_job_dead() -> None:
    post("cause")
    for attempt in range(5):
        assert claim(now=NOW + timedelta(minutes=attempt))
        sweep(NOW + timedelta(minutes=attempt, seconds=45))
    job = Job.objects.get()
    assert (job.state, job.attempts) == (JobState.DEAD, 5)
    assert "stopped 5 times" in job.last_error


def test_lost_wake_up_is_repeated_but_not_every_second(sent: list[int]) -> None:
    job = post("cause")
    Job.objects.update(created_at=NOW)
    woken = [sweep(NOW + timedelta(seconds=second)).woken for second in range(9)]
    assert woken == [0, 0, 1, 0, 0, 0, 0, 0, 1]
    assert sent == [job.pk, job.pk]


def test_recurring_work_is_posted_once_a_turn_by_any_number_of_sweepers(settings: Settings) -> None:
    settings.RECURRING_JOBS = {"note": 3600}
    for minute in (0, 1, 59, 60, 61):
        sweep(NOW + timedelta(minutes=minute))
    assert Job.objects.count() == 2
    assert Beat.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_one_of_many_workers_gets_each_job() -> None:
    for number in range(20):
        post(f"job {number}")
    together, taken = threading.Barrier(4), []

    def work() -> None:
        together.wait(10)
        while found := claim():
            taken.append(found.job.pk)
        connection.close()

    _run_together(work, 4)
    assert len(taken) == 20
    assert len(set(taken)) == 20


def _run_together(work: Callable[[], None], count: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
