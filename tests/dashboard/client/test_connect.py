"""`plimsoll connect claude-code`: what it puts into the client's settings, and that undoing takes out that alone."""

import copy
import json
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.client.client_settings import UnusableSettings, Wanted, merge_settings, undo_settings
from dashboard.client.client_settings_file import read_settings, replace_settings
from dashboard.client.client_wishes import is_safe_address, list_wishes
from dashboard.client.hook_forwarder import EVENTS
from tests.dashboard.running import run_plimsoll

WANTED = list_wishes("https://plimsoll.example", "plk_secret")
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
ENTRIES = st.lists(
    st.sampled_from([dict(WANTED.hooks["Stop"]), {"hooks": [{"type": "command", "command": "other"}]}]), max_size=3
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "model": VALUES,
        "permissions": st.dictionaries(st.text(max_size=5), VALUES, max_size=3),
        "hooks": st.dictionaries(st.sampled_from(["Stop", "PreCompact", "PreToolUse"]), ENTRIES, max_size=3),
        "statusLine": st.sampled_from([dict(WANTED.status_line), {"type": "command", "command": "mine"}]),
        "env": st.dictionaries(st.sampled_from(["EDITOR", *WANTED.variables]), st.sampled_from(["1", "x"]), max_size=4),
    },
)


@settings(max_examples=300, deadline=None)
@given(before=SETTINGS, replaces=st.booleans())
def test_merging_again_changes_nothing_and_undoing_gives_back_what_was(
    before: dict[str, object], *, replaces: bool
) -> None:
    untouched = copy.deepcopy(before)
    once = merge_settings(before, WANTED, {}, replaces_status_line=replaces)
    twice = merge_settings(once.settings, WANTED, once.receipt, replaces_status_line=replaces)
    assert before == untouched
    assert (spell(twice.settings), twice.receipt) == (spell(once.settings), once.receipt)
    assert all(WANTED.hooks[event] in once.settings["hooks"][event] for event in EVENTS)
    assert spell(undo_settings(once.settings, once.receipt)) == spell(before)


def spell(value: object) -> str:
    return json.dumps(value)  # with the order of its keys


@settings(max_examples=200, deadline=None)
@given(before=SETTINGS, name=st.text(min_size=1, max_size=5), changes_line=st.booleans())
def test_undoing_leaves_what_others_wrote_since(before: dict[str, Any], name: str, *, changes_line: bool) -> None:
    merged = merge_settings(before, WANTED, {}, replaces_status_line=True)
    since = copy.deepcopy(merged.settings)
    since[f"new {name}"] = {"a": 1}
    since["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": name}]})
    since["env"] = since.get("env", {}) | {"NEW": name}
    if changes_line:
        since["statusLine"] = {"type": "command", "command": name}
    left = undo_settings(since, merged.receipt)
    assert left[f"new {name}"] == {"a": 1}
    assert {"hooks": [{"type": "command", "command": name}]} in left["hooks"]["Stop"]
    assert left["env"] == before.get("env", {}) | {"NEW": name}
    expected = {"type": "command", "command": name} if changes_line else before.get("statusLine")
    assert left.get("statusLine") == expected


def test_telemetry_that_goes_elsewhere_is_left_alone() -> None:
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://elsewhere.example"}
    merged = merge_settings({"env": env}, WANTED, {}, replaces_status_line=False)
    assert merged.settings["env"] == env
    assert merged.left_alone == ("OTEL_EXPORTER_OTLP_ENDPOINT",)


@pytest.mark.parametrize("broken", [{"hooks": []}, {"hooks": {"Stop": {}}}, {"env": "x"}])
def test_settings_of_another_shape_are_refused(broken: dict[str, object]) -> None:
    with pytest.raises(UnusableSettings):
        merge_settings(broken, Wanted({}, {}, {}), {}, replaces_status_line=False)


@pytest.mark.parametrize(
    ("url", "is_safe"),
    [
        ("https://plimsoll.example", True),
        ("https://plimsoll.example/below", True),
        ("http://127.0.0.1:8000", True),
        ("http://[::1]:8000", True),
        ("http://plimsoll.example", False),
        ("https://ann:word@plimsoll.example", False),
        ("ftp://plimsoll.example", False),
        ("https://", False),
        ("http://127.0.0.1:99999", False),
    ],
)
def test_key_goes_to_safe_addresses_alone(url: str, *, is_safe: bool) -> None:
    assert is_safe_address(url) is is_safe


def test_settings_changed_meanwhile_are_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"model": "opus"}')
    _, text = read_settings(path)
    path.write_text('{"model": "haiku"}')
    with pytest.raises(UnusableSettings, match="another program"):
        replace_settings(path, text, "{}", now=_now())
    assert path.read_text() == '{"model": "haiku"}'


def _now() -> datetime:
    return datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def home(prepared: Path) -> Path:
    return prepared


def test_command_writes_shows_and_undoes(home: Path) -> None:
    path = home / "mine" / "settings.json"
    path.parent.mkdir()
    original = '{\n  "model": "opus",\n  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "ding"}]}]}\n}\n'
    path.write_text(original)
    own = {"PLIMSOLL_CLIENT_FOLDER": str(home / "client"), "CLAUDE_CONFIG_DIR": str(home / "mine")}
    printed = run_plimsoll(home, "connect", "claude-code", **own)
    assert printed.returncode == 0, printed.stderr
    assert json.loads(printed.stdout)["statusLine"]["command"].endswith("statusline")
    assert path.read_text() == original
    written = run_plimsoll(home, "connect", "claude-code", "--write", **own)
    assert written.returncode == 0, written.stderr
    kept = json.loads((home / "client" / "connection.json").read_text())
    assert kept["key"].startswith("plk_")
    assert kept["key"] not in written.stdout
    assert '+  "statusLine": {' in written.stdout
    told = json.loads(path.read_text())
    assert list(told)[:2] == ["model", "hooks"]
    assert [len(told["hooks"][event]) for event in EVENTS] == [2 if event == "Stop" else 1 for event in EVENTS]
    assert told["env"]["OTEL_EXPORTER_OTLP_HEADERS"] == f"X-Plimsoll-Key={kept['key']}"
    assert "ANTHROPIC_BASE_URL" not in path.read_text()
    (backup,) = path.parent.glob("settings.json.backup-*")
    assert backup.read_text() == original
    for file in (path, backup, *(home / "client").glob("*.json")):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    again = run_plimsoll(home, "connect", "claude-code", "--write", **own)
    assert (again.returncode, "already up to date" in again.stdout) == (0, True), again.stderr
    undone = run_plimsoll(home, "connect", "claude-code", "--undo", **own)
    assert undone.returncode == 0, undone.stderr
    assert json.loads(path.read_text()) == json.loads(original)
    assert not (home / "client" / "connection.json").exists()


def test_connection_stays_while_another_settings_file_uses_it(home: Path) -> None:
    own = {"PLIMSOLL_CLIENT_FOLDER": str(home / "shared"), "CLAUDE_CONFIG_DIR": str(home / "work")}
    other = home / "private" / "settings.json"
    for more in ([], ["--settings", str(other)]):
        done = run_plimsoll(home, "connect", "claude-code", "--write", *more, **own)
        assert done.returncode == 0, done.stderr
    connection = home / "shared" / "connection.json"
    assert run_plimsoll(home, "connect", "claude-code", "--undo", **own).returncode == 0
    assert connection.exists()
    assert "statusLine" in json.loads(other.read_text())
    assert run_plimsoll(home, "connect", "claude-code", "--undo", "--settings", str(other), **own).returncode == 0
    assert not connection.exists()


def test_status_line_is_asked_for_while_nothing_happens() -> None:
    """Else a countdown would stand still; the client takes seconds, one at the least."""
    assert WANTED.status_line["refreshInterval"] == 10


def test_command_refuses_what_it_must_not_do(home: Path) -> None:
    own = {"PLIMSOLL_CLIENT_FOLDER": str(home / "client"), "CLAUDE_CONFIG_DIR": str(home / "mine")}
    project = home / "project" / ".claude" / "settings.json"
    for arguments, sentence in (
        (["--write", "--settings", str(project)], "belongs to a project"),
        (["--write", "--url", "http://plimsoll.example"], "expected https"),
        (["--write", "--url", "https://plimsoll.example"], "--key"),
    ):
        done = run_plimsoll(home, "connect", "claude-code", *arguments, **own)
        assert (done.returncode, sentence in done.stderr) == (1, True), done.stderr
    assert not project.exists()
    broken = home / "broken.json"
    broken.write_text("{// mine\n}")
    done = run_plimsoll(home, "connect", "claude-code", "--write", "--settings", str(broken), "--key", "plk_x", **own)
    assert (done.returncode, "Nothing was changed" in done.stderr) == (1, True)
    assert broken.read_text() == "{// mine\n}"
