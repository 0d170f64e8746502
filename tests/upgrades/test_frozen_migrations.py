"""The frozen copies of code in migrations keep their figures."""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dashboard.migrations._frozen_0010 import list_shape_digests
from dashboard.migrations._frozen_0021 import SessionLevel, compute_level, find_window_tokens

STORED = Path(__file__).with_name("0003_runs_and_demo.sqlite3.gz")

LEVELS: list[tuple[dict[str, Any], str, int | None, int, SessionLevel]] = [
    ({}, "claude-opus-4-6", None, 155_360, SessionLevel(1_000_000, 967_000, "ok", 84)),
    ({}, "claude-sonnet-4-5", None, 147_000, SessionLevel(200_000, 167_000, "error", 12)),
    ({}, "claude-sonnet-4-5", None, 167_000, SessionLevel(200_000, 167_000, "auto-compact", 0)),
    ({}, "claude-sonnet-4-5", 128_000, 105_000, SessionLevel(128_000, 95_000, "blocking", 0)),
    ({}, "gpt-5", None, 105_000, SessionLevel(None, None, "not known", None)),
    ({"preset": "early"}, "claude-haiku-4-5", None, 127_000, SessionLevel(200_000, 167_000, "warning", 24)),
    ({"is_auto_enabled": False}, "claude-opus-4", None, 160_000, SessionLevel(200_000, None, "error", 11)),
    ({"auto_percent": 50}, "claude-opus-4", None, 69_999, SessionLevel(200_000, 90_000, "ok", 22)),
    ({"window_tokens": "300,000"}, "gpt-5", None, 0, SessionLevel(300_000, 267_000, "ok", 100)),
    ({"max_output_tokens": 8_000}, "claude-opus-4", None, 0, SessionLevel(200_000, 179_000, "ok", 100)),
    (
        {"warning_margin_tokens": 30_000, "models": {"claude-opus-4.6": {"reserve_tokens": 0}}},
        "claude-opus-4-6",
        None,
        957_000,
        SessionLevel(1_000_000, 987_000, "warning", 3),
    ),
]


@pytest.mark.parametrize(("thresholds", "model", "reported", "used", "level"), LEVELS)
def test_levels_of_0021_stay(
    thresholds: dict[str, Any], model: str, reported: int | None, used: int, level: SessionLevel
) -> None:
    assert compute_level(thresholds, model, reported, used) == level


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-opus-4-6", 1_000_000),
        ("claude-opus-4-5-20251101[1m]", 1_000_000),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000),
        ("anthropic/claude-opus-4.5", 200_000),
        ("vertex_ai/claude-haiku-4-5@20251001", 200_000),
        ("claude-3-5-sonnet-latest", 200_000),
        ("claude-opus-9", None),
        ("gpt-5[1m]", None),
    ],
)
def test_windows_of_0021_stay(model: str, tokens: int | None) -> None:
    assert find_window_tokens(model, None) == tokens


def test_0010_finds_the_prompt_shapes_of_stored_facts(tmp_path: Path) -> None:
    database = tmp_path / "old.sqlite3"
    database.write_bytes(gzip.decompress(STORED.read_bytes()))
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT session_id, facts FROM dashboard_entrysegment").fetchall()
        shapes = {digest for (digest,) in connection.execute("SELECT digest FROM dashboard_promptshape")}
        uses = connection.execute(
            "SELECT session_id, digest FROM dashboard_shapeuse AS used "
            "JOIN dashboard_promptshape AS shape ON shape.id = used.shape_id"
        ).fetchall()
    found = {(session, digest) for session, facts in rows for digest in list_shape_digests(facts)}
    assert found
    assert {pair for pair in found if pair[1] in shapes} == set(uses)
