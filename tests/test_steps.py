"""The steps of `make test`: lanes side by side, every failure named, nothing left running."""

import signal
import sys
import time
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

from tests.steps import Run

MEET = """
import pathlib, sys, time
own, other = map(pathlib.Path, sys.argv[1:])
own.touch()
until = time.monotonic() + 60
while not other.exists() and time.monotonic() < until:
    time.sleep(0.02)
print("met" if other.exists() else "alone")
"""


def test_lanes_go_side_by_side_and_each_step_is_shown_in_one_piece(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run()
    one, two = tmp_path / "one", tmp_path / "two"
    steps = (("first", one, two), ("second", two, one))
    run.side_by_side(*(partial(run.step, name, sys.executable, "-c", MEET, *places) for name, *places in steps))
    shown = capsys.readouterr().out
    assert run.failed == []
    for name, _, _ in steps:
        assert f"\n=== {name}\nmet\n--- {name}: ok, " in shown


def test_failed_step_is_named_and_hides_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run({"WORD": "harbour"})

    def lane() -> None:
        run.step("broken", "sh", "-c", "echo $WORD; exit 3")
        run.step("whole", "sh", "-c", "echo $WORD $OWN", OWN="chart")

    run.side_by_side(lane)
    shown = capsys.readouterr().out
    assert run.failed == ["broken"]
    assert "harbour\n--- broken: FAILED (3)" in shown
    assert "harbour chart\n--- whole: ok" in shown


def test_step_is_interrupted_with_the_run_and_no_other_begins(capsys: pytest.CaptureFixture[str]) -> None:
    def leave(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(143)

    run = Run()

    def lane() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        run.step("long", sys.executable, "-c", "import time; time.sleep(60)")
        run.step("never begun", "true")

    before = signal.signal(signal.SIGALRM, leave)
    began = time.monotonic()
    try:
        with pytest.raises(SystemExit):
            run.side_by_side(lane)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 30
    assert run.failed == ["long"]
    assert "never begun" not in capsys.readouterr().out


def test_step_that_hangs_fails_after_it_said_what_it_did(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.steps.LONGEST_SECONDS", 1)
    run = Run()
    run.step("endless", "sh", "-c", "trap 'echo interrupted; exit 0' INT; echo begun; while :; do sleep 0.1; done")
    assert run.failed == ["endless"]
    assert "begun\ninterrupted\n--- endless: FAILED (1)" in capsys.readouterr().out
