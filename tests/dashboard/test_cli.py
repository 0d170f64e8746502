"""The console script: help, mistakes, accounts, keys, passwords, as typed in a terminal."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management.base import CommandError

from dashboard.cli import COMMANDS
from dashboard.console import PROGRAMS
from dashboard.management.plain_command import read_new_password
from dashboard.management.run_command import load_command, run_command
from dashboard.models import User
from tests.dashboard.running import run_plimsoll

PASSWORD = "a long walk home"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with alice, who owns the team Harbour."""
    folder = tmp_path_factory.mktemp("home")
    done = run_plimsoll(folder, "createowner", "alice", "--team", "Harbour", typed=f"{PASSWORD}\n")
    assert (done.returncode, done.stdout) == (0, "Account alice created, owner of team Harbour.\n"), done.stderr
    return folder


def test_help_lists_every_command_and_does_not_wait_for_django() -> None:
    code = """
import sys
from dashboard.cli import main
sys.argv = ["plimsoll", "--help"]
try:
    main()
finally:
    assert "django" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", done.stdout, re.MULTILINE), name


@pytest.mark.parametrize("name", sorted({*COMMANDS} - {"version", *PROGRAMS}))
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], name: str) -> None:
    with pytest.raises(SystemExit) as ended:
        run_command(load_command(name), name, ["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: plimsoll {name}")
    assert "-fd" not in shown


def test_no_command_shows_help_and_fails(tmp_path: Path) -> None:
    done = run_plimsoll(tmp_path)
    assert (done.returncode, done.stdout[:15]) == (2, "usage: plimsoll")


def test_version_is_printed(tmp_path: Path) -> None:
    assert re.fullmatch(r"plimsoll \d+\.\d+\.\d+\n", run_plimsoll(tmp_path, "version").stdout)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [("upp", "Did you mean up?"), ("bakcup", "Did you mean backup?"), ("xyzzy", "See: plimsoll --help")],
)
def test_unknown_command_gets_a_suggestion(tmp_path: Path, typed: str, answer: str) -> None:
    done = run_plimsoll(tmp_path, typed)
    assert done.returncode == 2
    assert done.stderr == f"plimsoll: unknown command '{typed}'. {answer}\n"


def test_bad_setting_is_one_sentence(tmp_path: Path) -> None:
    done = run_plimsoll(tmp_path, "check", PLIMSOLL_WEB_PROCESSES="many")
    assert done.returncode == 2
    assert done.stderr == "plimsoll: PLIMSOLL_WEB_PROCESSES='many': expected a whole number from 1 to 64.\n"


def test_unprepared_database_is_one_sentence(tmp_path: Path) -> None:
    done = run_plimsoll(tmp_path, "resetpassword", "alice", typed=PASSWORD)
    assert done.returncode == 1
    assert "Run `plimsoll migrate` to set it up" in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_option_shows_usage(tmp_path: Path) -> None:
    done = run_plimsoll(tmp_path, "createkey", "--scope", "everything", "--name", "x")
    assert done.returncode == 2
    assert "usage: plimsoll createkey" in done.stderr


@pytest.mark.parametrize(
    ("name", "password", "said"),
    [
        ("Alice", PASSWORD, "already"),
        ("a b", PASSWORD, "valid"),
        ("bob", "short", "too short"),
        ("bob", "", "too short"),
    ],
)
def test_owner_is_not_made_with_a_bad_name_or_password(home: Path, name: str, password: str, said: str) -> None:
    done = run_plimsoll(home, "createowner", name, typed=f"{password}\n")
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_password_is_reset_from_a_pipe(home: Path) -> None:
    assert run_plimsoll(home, "resetpassword", "ALICE", typed="another long walk\n").returncode == 0
    weak = run_plimsoll(home, "resetpassword", "alice", typed="password12\n")
    assert weak.returncode == 1
    assert "Nothing was changed." in weak.stderr
    absent = run_plimsoll(home, "resetpassword", "nobody", typed=PASSWORD)
    assert (absent.returncode, absent.stderr) == (1, "plimsoll: Account nobody not found.\n")


def test_key_alone_goes_to_standard_output(home: Path) -> None:
    done = run_plimsoll(
        home, "createkey", "--name", "laptop", "--scope", "ingest", "--scope", "read", "--expires-days", "30"
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"plk_[\w-]{43}\n", done.stdout)
    assert "API key of alice in Harbour" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--team", "nowhere"], "Team nowhere not found."),
        (["--owner", "nobody"], "Account nobody not found."),
        (["--expires-days", "0"], "--expires-days: expected 1 to 3650."),
        (["--name", " "], "--name: expected 1 to 80 characters."),
    ],
)
def test_key_for_nobody_is_not_made(home: Path, arguments: list[str], said: str) -> None:
    done = run_plimsoll(home, "createkey", "--name", "x", "--scope", "read", *arguments)
    assert (done.returncode, done.stderr) == (1, f"plimsoll: {said}\n")


def test_content_scope_alone_is_refused_in_words(home: Path) -> None:
    done = run_plimsoll(home, "createkey", "--name", "x", "--scope", "content")
    assert done.returncode == 1
    assert "requires the read scope" in done.stderr


def test_sign_in_link_is_printed(home: Path) -> None:
    done = run_plimsoll(home, "signinlink", "alice")
    assert re.fullmatch(r"http://127\.0\.0\.1:8000/sign-in/link/pls_[\w-]{43}/\n", done.stdout)
    server = run_plimsoll(home, "signinlink", PLIMSOLL_PUBLIC_URL="https://plimsoll.example")
    assert (server.returncode, server.stderr) == (1, "plimsoll: Specify an account: plimsoll signinlink NAME\n")


class Terminal:
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("second", "said"), [(PASSWORD, None), ("another", "The passwords do not match.")])
def test_password_is_typed_twice_on_a_terminal(monkeypatch: pytest.MonkeyPatch, second: str, said: str | None) -> None:
    answers = iter([PASSWORD, second])
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("getpass.getpass", lambda _prompt: next(answers))
    if said is None:
        assert read_new_password(User(username="alice")) == PASSWORD
    else:
        with pytest.raises(CommandError, match=said):
            read_new_password(User(username="alice"))
