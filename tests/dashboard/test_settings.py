"""The settings as a fresh process reads them from its environment."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

READ = """
import json
from dashboard import settings
names = [name for name in dir(settings) if name.isupper()]
print(json.dumps({name: getattr(settings, name) for name in names}, default=str))
"""


def read_settings(folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": "/usr/bin:/bin", "PLIMSOLL_DATA": str(folder), **variables}
    return subprocess.run([sys.executable, "-c", READ], env=environment, capture_output=True, text=True, check=False)


def settings_of(folder: Path, **variables: str) -> dict[str, Any]:
    done = read_settings(folder, **variables)
    assert done.returncode == 0, done.stderr
    values: dict[str, Any] = json.loads(done.stdout)
    return values


def test_defaults_are_local_and_closed(tmp_path: Path) -> None:
    values = settings_of(tmp_path)
    assert values["DEBUG"] is False
    assert (values["HOST"], values["PORT"], values["PUBLIC_URL"]) == ("127.0.0.1", 8000, "http://127.0.0.1:8000")
    assert values["LOCAL_MODE"] is True
    assert values["LOOPBACK_ONLY"] is True
    assert values["ALLOWED_HOSTS"] == ["127.0.0.1", "[::1]", "localhost"]
    assert values["SESSION_COOKIE_SECURE"] is False
    options = values["DATABASES"]["default"]["OPTIONS"]
    assert options["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in options["init_command"]
    assert "synchronous=NORMAL" in options["init_command"]


def test_https_address_turns_tls_on(tmp_path: Path) -> None:
    values = settings_of(tmp_path, PLIMSOLL_PUBLIC_URL="https://plimsoll.example", PLIMSOLL_HOST="0.0.0.0")
    for name in ("TLS", "SECURE_SSL_REDIRECT", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"):
        assert values[name] is True, name
    assert values["SECURE_HSTS_SECONDS"] >= 31_536_000
    assert values["LOCAL_MODE"] is False
    assert values["LOOPBACK_ONLY"] is False
    assert "plimsoll.example" in values["ALLOWED_HOSTS"]
    assert "*" not in values["ALLOWED_HOSTS"]


def test_loopback_behind_a_public_address_is_not_local(tmp_path: Path) -> None:
    values = settings_of(tmp_path, PLIMSOLL_PUBLIC_URL="https://plimsoll.example")
    assert (values["LOOPBACK_ONLY"], values["LOCAL_MODE"]) == (True, False)


def test_ipv6_loopback_is_written_in_brackets(tmp_path: Path) -> None:
    values = settings_of(tmp_path, PLIMSOLL_HOST="::1")
    assert (values["PUBLIC_URL"], values["LOCAL_MODE"]) == ("http://[::1]:8000", True)


def test_transcripts_of_this_machine_are_followed_in_local_mode_alone(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": ""}
    own = str(tmp_path / ".claude" / "projects")
    assert settings_of(tmp_path, **home)["FOLLOW_ROOTS"] == [own]
    told = {"CLAUDE_CONFIG_DIR": str(tmp_path / "told")}
    assert settings_of(tmp_path, **home, **told)["FOLLOW_ROOTS"] == [own, str(tmp_path / "told" / "projects")]
    xdg = tmp_path / ".config" / "claude" / "projects"
    xdg.mkdir(parents=True)
    assert settings_of(tmp_path, **home)["FOLLOW_ROOTS"] == [own, str(xdg)]
    assert settings_of(tmp_path, **home, PLIMSOLL_FOLLOW="off")["FOLLOW_ROOTS"] == []
    public = {"PLIMSOLL_PUBLIC_URL": "https://plimsoll.example"}
    assert settings_of(tmp_path, **home, **public)["FOLLOW_ROOTS"] == []
    assert settings_of(tmp_path, **home, **public, PLIMSOLL_FOLLOW="/srv/a:/srv/b")["FOLLOW_ROOTS"] == [
        "/srv/a",
        "/srv/b",
    ]


def test_postgresql_gets_a_pool(tmp_path: Path) -> None:
    values = settings_of(tmp_path, DATABASE_URL="postgresql://u:p@db:5433/plimsoll", PLIMSOLL_DATABASE_POOL="4")
    database = values["DATABASES"]["default"]
    assert (database["ENGINE"], database["HOST"], database["PORT"]) == ("django.db.backends.postgresql", "db", 5433)
    assert database["OPTIONS"]["pool"]["max_size"] == 4


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PLIMSOLL_PORT", "0"),
        ("PLIMSOLL_PORT", "http"),
        ("PLIMSOLL_WEB_PROCESSES", "-1"),
        ("PLIMSOLL_MAX_REQUESTS_IN_FLIGHT", "0"),
        ("PLIMSOLL_PUBLIC_URL", "plimsoll.example"),
        ("PLIMSOLL_HOST", "0.0.0.0"),
        ("PLIMSOLL_SECRET_KEY", "short"),
        ("PLIMSOLL_SQLITE_SYNCHRONOUS", "OFF"),
        ("PLIMSOLL_LOG_LEVEL", "LOUD"),
        ("PLIMSOLL_LOG_JSON", "perhaps"),
        ("DATABASE_URL", "mysql://u:hunter2@db/plimsoll"),
        ("DATABASE_URL", "postgresql://u:hunter2@db:port/plimsoll"),
    ],
)
def test_bad_value_is_refused_by_name(tmp_path: Path, name: str, text: str) -> None:
    done = read_settings(tmp_path, **{name: text})
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("dashboard.environment.BadSetting")
    assert name in last
    assert "hunter2" not in last
