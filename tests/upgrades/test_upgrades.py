"""R17: databases of earlier versions, with data, become databases of this one, also when the upgrade is killed.

A file per version whose schema differs: `NAME.sql` as `sqlite3 .dump` writes it, or `NAME.sqlite3.gz`. None is changed
later.
"""

import gzip
import random
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.dashboard.running import PLIMSOLL, environment_for, run_plimsoll, running_plimsoll
from tests.upgrades.transcripts_read_before import write_transcripts

FOLDER = Path(__file__).parent
DUMPS = sorted(path.name for path in FOLDER.iterdir() if path.name.endswith((".sql", ".sqlite3.gz")))
KILLS = 6


@pytest.fixture(params=DUMPS)
def upgraded(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with an earlier database in it."""
    database = tmp_path / "data" / "plimsoll.sqlite3"
    database.parent.mkdir(mode=0o700)
    dump = FOLDER / request.param
    if dump.suffix == ".sql":
        with closing(sqlite3.connect(database)) as connection:
            connection.executescript(dump.read_text())
    else:
        database.write_bytes(gzip.decompress(dump.read_bytes()))
    return tmp_path


def _count(folder: Path) -> dict[str, int]:
    """Rows of every table that an earlier version could have filled; how the search index packs its own is its own."""
    with closing(sqlite3.connect(folder / "data" / "plimsoll.sqlite3")) as connection:
        names = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if name.startswith("dashboard_") and not name.startswith("dashboard_session_search_")
        ]
        return {name: connection.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0] for name in names}


def _read_schema(database: Path) -> set[tuple[str, str]]:
    with closing(sqlite3.connect(database)) as connection:
        return set(connection.execute("SELECT name, sql FROM sqlite_master"))


def _check(folder: Path, before: dict[str, int]) -> None:
    after = _count(folder)
    assert {name: after[name] for name in before} == before
    assert run_plimsoll(folder, "migrate", "--check").returncode == 0
    with closing(sqlite3.connect(folder / "data" / "plimsoll.sqlite3")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_earlier_database_becomes_this_one_and_serves_pages(upgraded: Path, migrated_folder: Path) -> None:
    before = _count(upgraded)
    assert sum(before.values())
    done = run_plimsoll(upgraded, "migrate", "-v", "0")
    assert done.returncode == 0, done.stderr
    _check(upgraded, before)
    new = migrated_folder / "plimsoll.sqlite3"  # made by one migration instead of all
    assert _read_schema(upgraded / "data" / "plimsoll.sqlite3") == _read_schema(new)
    with running_plimsoll(upgraded, "web") as running:
        assert running.get("/sign-in/")[0] == 200


@pytest.mark.parametrize("upgraded", DUMPS[:2], indirect=True)  # the longest way, and one with sessions
def test_killed_upgrade_goes_on_where_it_stopped(upgraded: Path) -> None:
    before = _count(upgraded)
    chance = random.Random(17)
    began = time.monotonic()
    run_plimsoll(upgraded, "migrate", "--plan")
    start_seconds = time.monotonic() - began  # how long until the first statement, about
    for _ in range(KILLS):
        process = subprocess.Popen(
            [*PLIMSOLL, "migrate", "-v", "0"],
            env=environment_for(upgraded),
            cwd=upgraded,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(start_seconds * chance.uniform(0.7, 1.3))
        process.kill()
        process.wait()
    done = run_plimsoll(upgraded, "migrate", "-v", "0")
    assert done.returncode == 0, done.stderr
    _check(upgraded, before)


@pytest.mark.parametrize("upgraded", ["0004_other_agents.sqlite3.gz"], indirect=True)
def test_stored_sessions_of_other_agents_are_levelled_anew(upgraded: Path) -> None:
    """As are windows that were inferred, and peaks that left out what was compacted."""
    assert run_plimsoll(upgraded, "migrate", "-v", "0").returncode == 0
    columns = "model, is_claude_code, is_window_inferred, window_tokens, level, peak_tokens"
    with closing(sqlite3.connect(upgraded / "data" / "plimsoll.sqlite3")) as connection:
        found = connection.execute(f"SELECT {columns} FROM dashboard_agentsession ORDER BY id").fetchall()
        peaks = connection.execute("SELECT MAX(peak_tokens) FROM dashboard_thread GROUP BY session_id").fetchall()
    assert found == [
        ("claude-opus-4-6", 0, 0, 1_000_000, "ok", 155_360),
        ("claude-opus-4-6", 0, 0, 1_000_000, "ok", 230_000),
        ("claude-sonnet-4-5[1m]", 0, 1, 1_000_000, "ok", 230_000),
        ("claude-opus-4-5-20251101", 1, 0, 200_000, "ok", 168_200),
        ("claude-opus-4-5-20251101[1m]", 1, 1, 1_000_000, "ok", 230_053),
        ("claude-opus-4-5[1m]", 1, 0, 1_000_000, "ok", 230_053),
        ("claude-opus-4-5-20251101", 1, 0, 200_000, "ok", 167_000),
    ]
    assert [peak for (peak,) in peaks] == [row[-1] for row in found]


@pytest.mark.parametrize("upgraded", ["0005_first_reading.sqlite3.gz"], indirect=True)
def test_sessions_are_read_again_where_their_transcript_is_there(upgraded: Path) -> None:
    transcripts = upgraded / "transcripts"
    transcripts.mkdir()
    write_transcripts(transcripts)
    (transcripts / "gone.jsonl").unlink()
    assert run_plimsoll(upgraded, "migrate", "-v", "0").returncode == 0
    columns = "reading_version, turn_count, call_count, pending_tokens, context_tokens, entry_count"
    query = f"SELECT {columns} FROM dashboard_agentsession ORDER BY call_count DESC"
    with closing(sqlite3.connect(upgraded / "data" / "plimsoll.sqlite3")) as connection:
        assert connection.execute(query).fetchall() == [(1, 3, 2, 0, 30_553, 10)] * 2
        assert run_plimsoll(upgraded, "import", str(transcripts)).returncode == 0
        reread, kept = connection.execute(query).fetchall()
    assert reread == (3, 2, 3, 4_000, 34_553, 11)
    assert kept == (1, 3, 2, 0, 30_553, 10)


@pytest.mark.parametrize("upgraded", ["0004_other_agents.sqlite3.gz"], indirect=True)
def test_accounts_whose_names_are_one_now_are_both_kept(upgraded: Path) -> None:
    database = upgraded / "data" / "plimsoll.sqlite3"
    names = ("strasse", "stra\u00dfe", "\u00c4rger", "\u00e4rger", "Mia.Z")
    with closing(sqlite3.connect(database)) as connection, connection:
        last_pk = connection.execute("SELECT MAX(id) FROM dashboard_user").fetchone()[0]
        connection.executemany(
            "INSERT INTO dashboard_user (username, password, is_active, is_demo, created_at, session_columns) "
            "VALUES (?, '!', 1, 0, '2026-01-01 00:00:00', '[]')",
            [(name,) for name in names],
        )
    assert run_plimsoll(upgraded, "migrate", "-v", "0").returncode == 0
    with closing(sqlite3.connect(database)) as connection:
        keys = dict(connection.execute("SELECT username, name_key FROM dashboard_user WHERE id > ?", [last_pk]))
    assert keys == {
        "strasse": "strasse",
        "stra\u00dfe": f"strasse {last_pk + 2}",
        "\u00c4rger": "\u00e4rger",
        "\u00e4rger": f"\u00e4rger {last_pk + 4}",
        "Mia.Z": "mia.z",
    }
    for name in names:
        assert run_plimsoll(upgraded, "signinlink", name).returncode == 0, name


@pytest.mark.parametrize("upgraded", ["0003_runs_and_demo.sqlite3.gz"], indirect=True)
def test_stored_dollars_are_never_called_avoidable_that_were_not(upgraded: Path) -> None:
    """Own prices move to the policy; what a longer lifetime would have saved is unknown until it is worked out."""
    database = upgraded / "data" / "plimsoll.sqlite3"
    prices = '{"claude-opus-4-5": ["1", "2", null, null, "0.1"]}'
    columns = "team_id, model, small_model, key_hint, allows_fork, native_form, daily_cap_usd, changed_at, own_prices"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            f"INSERT INTO dashboard_summarizersettings ({columns}) VALUES (1, '', '', '', 1, 'off', 5, ?, ?)",
            ("2026-01-01 00:00:00", prices),
        )
        connection.execute("UPDATE dashboard_agentsession SET avoidable_usd = lost_usd")
    assert run_plimsoll(upgraded, "migrate", "-v", "0").returncode == 0
    with closing(sqlite3.connect(database)) as connection:
        breaks = "SELECT DISTINCT is_avoidable, avoidable_usd = lost_usd FROM dashboard_cachebreak WHERE kind = 'break'"
        assert connection.execute(f"{breaks} AND cause = 'ttl_expired_1h'").fetchall() == [(0, None)]
        assert connection.execute(f"{breaks} AND cause = 'ttl_expired_5m'").fetchall() == [(1, None)]
        assert connection.execute(f"{breaks} AND cause = 'tools_changed'").fetchall() == [(1, 1)]
        sums = connection.execute(
            "SELECT abs(avoidable_usd - (SELECT coalesce(sum(avoidable_usd), 0) FROM dashboard_cachebreak AS lost "
            "WHERE lost.session_id = held.id AND kind = 'break' AND is_counted)) < 1e-9, count(*) "
            "FROM dashboard_agentsession AS held GROUP BY 1"
        ).fetchall()
        assert [is_sum for is_sum, _ in sums] == [1]
        policy = connection.execute(
            "SELECT version, price_version, own_prices, stores_content FROM dashboard_teampolicy WHERE team_id = 1"
        ).fetchall()
        assert policy == [(1, 1, prices, 1)]
        team = connection.execute("SELECT price_version, has_own_prices FROM dashboard_team WHERE id = 1").fetchall()
        assert team == [(1, 1)]


@pytest.mark.parametrize("upgraded", ["0003_runs_and_demo.sqlite3.gz"], indirect=True)
def test_stored_audits_keep_their_figures_under_new_names(upgraded: Path) -> None:
    database = upgraded / "data" / "plimsoll.sqlite3"
    tables = ("dashboard_observedcompaction", "dashboard_runrevision")
    audit = '{"parts":[["user messages",30,1,2]],"lost_count":1,"lost":[]}'
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE dashboard_observedcompaction SET loss_score = 50.0, losses = ?", [audit])
        before = [
            connection.execute(f"SELECT id, loss_score, losses FROM {table} ORDER BY id").fetchall() for table in tables
        ]
    assert all(score is not None for rows in before for _, score, _ in rows)
    assert run_plimsoll(upgraded, "migrate", "-v", "0").returncode == 0
    with closing(sqlite3.connect(database)) as connection:
        after = [
            connection.execute(f"SELECT id, retained_percent, audit FROM {table} ORDER BY id").fetchall()
            for table in tables
        ]
        versions = connection.execute("SELECT DISTINCT audit_version FROM dashboard_observedcompaction").fetchall()
    assert after == before
    assert versions == [(None,)]
