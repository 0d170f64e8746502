"""`plimsoll statusline`: the gauge in one line, drawn with the engine's own lines, and what it forwards."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.context.policy import Policy
from compaction.context.thresholds import classify_usage, compute_thresholds
from compaction.context.windows import ModelInUse
from dashboard.client import statusline
from dashboard.client.spool import list_events, read_event
from dashboard.client.status_gauge import Surface, compute_percent_left, draw_gauge, find_level, spell_tokens
from dashboard.client.status_lines import draw_status_lines
from dashboard.client.status_values import StatusValues, read_status, read_time
from tests.dashboard.client.test_hook_forwarder import CONSOLE, connect
from tests.dashboard.running import environment_for, wait_until

PLAIN = Surface(width=100, has_colour=False)
NOW = 1_777_629_600.0  # 2026-05-01 10:00 UTC


def make_status(used: int | None = 96_000, *, model: str = "claude-opus-4-5", window: int | None = 200_000) -> Any:
    usage = None if used is None else {"input_tokens": 0, "cache_read_input_tokens": used}
    return {
        "session_id": "s1",
        "model": {"id": model, "display_name": "Opus"},
        "version": "2.1.126",
        "cost": {"total_cost_usd": 1.234},
        "context_window": {"context_window_size": window, "current_usage": usage},
        "prompt_cache": {"warm": True, "expires_at": NOW + 252, "misses": 2, "requests": 9},
    }


def draw(told: Any, surface: Surface = PLAIN, **environment: str) -> str:
    values = read_status(told)
    return draw_gauge(values, draw_status_lines(values, environment), surface, now=NOW)


def test_line_shows_bar_lines_room_warmth_misses_and_cost() -> None:
    assert draw(make_status()) == (
        "▕██████████░░░░╎░│┃░░▏ 43% until auto-compact · 96k/200k · warm 4:12 · 2 cache misses · $1.23"
    )


@pytest.mark.parametrize(
    ("used", "left", "room"),
    [(0, "100%", "0/200k"), (167_000, "0%", "167k/200k"), (200_000, "0%", "200k/200k"), (260_000, "0%", "260k/200k")],
)
def test_line_at_nothing_at_the_limit_when_full_and_above(used: int, left: str, room: str) -> None:
    line = draw(make_status(used))
    assert f" {left} until auto-compact" in line
    assert f" · {room} · " in line
    assert len(re.findall("[█░╎│┃]", line)) == 20


def test_right_after_a_compaction_the_share_speaks() -> None:
    told = make_status(None)
    told["context_window"]["used_percentage"] = 12
    assert "24k/200k" in draw(told)
    del told["context_window"]["used_percentage"]
    assert "0/200k" in draw(told)


def test_model_that_nobody_knows_shows_its_tokens() -> None:
    assert draw(make_status(model="harbour-1", window=None)).startswith("96k tokens, window unknown · warm")
    assert "96k/400k" in draw(make_status(model="harbour-1", window=400_000))


def test_auto_compact_switched_off_has_no_tick_and_counts_to_what_is_available() -> None:
    line = draw(make_status(), DISABLE_AUTO_COMPACT="1")
    assert "│" not in line
    assert " 47% left · " in line


@pytest.mark.parametrize("width", [100, 70, 60, 40, 25, 10, 3])
def test_line_fits_its_width(width: int) -> None:
    line = draw(make_status(), PLAIN._replace(width=width))
    assert len(line) <= width
    assert ("%" in line) == (width >= 10)


def test_colour_follows_the_level_and_can_be_left_out() -> None:
    colours = [draw(make_status(used), Surface(100))[:6] for used in (96_000, 150_000, 170_000, 180_000)]
    assert colours == ["\x1b[32m▕", "\x1b[31m▕", "\x1b[31m▕", "\x1b[1;31"]
    assert draw(make_status(), Surface(100, has_colour=False, is_ascii=True)).isascii()


def test_cache_that_ended_is_cold() -> None:
    told = make_status()
    told["prompt_cache"]["expires_at"] = NOW - 5
    assert "cache cold" in draw(told)
    told["prompt_cache"] = {"warm": False}
    assert "cache cold" in draw(told)
    told["prompt_cache"] = None
    assert "cache" not in draw(told)


VARIABLES = st.fixed_dictionaries(
    {},
    optional={
        "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": st.sampled_from(["50", "80", "200", "x"]),
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW": st.sampled_from(["150000", "900000", "7"]),
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": st.sampled_from(["8000", "64000"]),
        "DISABLE_AUTO_COMPACT": st.sampled_from(["1", "0"]),
        "DISABLE_COMPACT": st.sampled_from(["1", "0"]),
    },
)


@settings(max_examples=200, deadline=None)
@given(
    used=st.integers(0, 1_200_000),
    window=st.none() | st.integers(1, 1_000_000),
    model=st.sampled_from(["claude-opus-4-5", "claude-sonnet-4-5[1m]", "harbour-1", ""]),
    environment=VARIABLES,
)
def test_level_and_percent_are_those_of_the_engine(
    used: int, window: int | None, model: str, environment: dict[str, str]
) -> None:
    values = StatusValues(model=model, window_tokens=window, used_tokens=used)
    lines = draw_status_lines(values, environment)
    in_use = ModelInUse(model, reported_window_tokens=window)
    reading = classify_usage(compute_thresholds(Policy.from_environment(environment), in_use), used)
    level = {"auto": "auto-compact", "": "not known"}
    assert level.get(find_level(lines, used), find_level(lines, used)) == reading.level.value
    assert (compute_percent_left(lines, used) if lines else None) == reading.percent_left


def test_every_variable_that_moves_a_line_is_looked_at() -> None:
    """Lines are remembered under these: one left out would keep old lines for ever."""
    asked: set[str] = set()

    class Asking(dict[str, object]):
        def get(self, name: object, default: object = None) -> object:
            asked.add(str(name))
            return default

    Policy.from_environment(Asking())
    moving = {name for name in asked if name.isupper() and "PROMPT_CACHING" not in name}
    assert moving == set(statusline.VARIABLES)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PARTS = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("context_window_size", "current_usage", "used_percentage", "expires_at", "misses", "warm", "total_cost_usd"),
        JSON,
    ),
)


@settings(max_examples=200, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(("context_window", "prompt_cache", "cost"), PARTS | JSON)
        | dict.fromkeys(("session_id", "model", "version", "rate_limits"), JSON),
    )
)
def test_any_status_gives_one_line_and_an_event_that_can_be_sent(told: dict[str, Any]) -> None:
    told = json.loads(json.dumps(told))
    line = draw(told)
    assert "\n" not in line
    assert len(line) <= PLAIN.width
    values = read_status(told)
    sent = json.loads(json.dumps(statusline.spell_event(values)))
    assert read_status(sent)[:6] == values[:6]


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        (NOW, NOW), (NOW * 1000, NOW), ("2026-05-01T10:00:00Z", NOW), ("2026-05-01T12:00:00+02:00", NOW),
        ("2026-05-01T10:00:00", NOW), ("soon", None), (-1, None), (True, None), (1e300, None), (None, None),
    ],
)  # fmt: skip
def test_times_are_read_in_every_spelling(told: object, seconds: float | None) -> None:
    assert read_time(told) == seconds


@pytest.mark.parametrize(
    ("tokens", "spelt"),
    [(0, "0"), (999, "999"), (1_000, "1k"), (999_499, "999k"), (999_500, "1M"), (1_250_000, "1.25M")],
)
def test_tokens_are_spelt_short(tokens: int, spelt: str) -> None:
    assert spell_tokens(tokens) == spelt


def run_line(folder: Path, told: object, **variables: str) -> str:
    environment = environment_for(folder, PLIMSOLL_CLIENT_FOLDER=str(folder), PYTHONIOENCODING="utf8", **variables)
    done = subprocess.run(
        [*CONSOLE, "statusline"], env=environment, input=json.dumps(told).encode(), capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_program_prints_one_line_and_remembers_its_lines(tmp_path: Path) -> None:
    first = run_line(tmp_path, make_status(), NO_COLOR="1", COLUMNS="120")
    assert first.startswith("▕██████████░░░░╎░│┃░░▏ 43% until auto-compact · 96k/200k")
    memory = json.loads((tmp_path / "statusline.json").read_text())
    (lines,) = memory["lines"].values()
    assert (lines["warning"], lines["auto"], lines["blocking"]) == (147_000, 167_000, 177_000)
    assert run_line(tmp_path, make_status(), NO_COLOR="1", COLUMNS="120") == first
    assert "│" not in run_line(tmp_path, make_status(), NO_COLOR="1", DISABLE_AUTO_COMPACT="1")
    (tmp_path / "statusline.json").write_text('{"lines": 7, "forwarded": []}')
    assert run_line(tmp_path, make_status(), NO_COLOR="1", COLUMNS="120") == first
    assert not (tmp_path / "spool").exists()


def test_program_shows_the_line_where_nothing_can_be_remembered(tmp_path: Path) -> None:
    (tmp_path / "statusline.json").mkdir()
    assert "43%" in run_line(tmp_path, make_status(), NO_COLOR="1")


def test_status_is_forwarded_when_something_changed(tmp_path: Path) -> None:
    connect(tmp_path, "http://127.0.0.1:9")
    run_line(tmp_path, make_status())
    (first,) = list_events(str(tmp_path))
    run_line(tmp_path, make_status())
    assert list_events(str(tmp_path))[-1].changed_ns == first.changed_ns
    run_line(tmp_path, make_status(120_000))
    wait_until(lambda: _find_used(tmp_path) == 120_000, seconds=5, what="the newer status in the spool")


def _find_used(folder: Path) -> int | None:
    events = [json.loads(read_event(event)) for event in list_events(str(folder))]
    return max((read_status(event).used_tokens or 0 for event in events), default=None)
