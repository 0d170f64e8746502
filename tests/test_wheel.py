"""The wheel is whole: built, installed in a clean environment, started from elsewhere, it serves its pages."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.services import free_port

ROOT = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")
START_SECONDS = 60
pytestmark = pytest.mark.xdist_group("wheel")  # built and installed once


def _run(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _run(UV, "build", "--wheel", "--no-build-isolation", "--python", sys.executable, "--out-dir", folder, ROOT)
    (wheel,) = folder.glob("plimsoll-*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """The `plimsoll` of a clean environment that holds the wheel and what it asks for, at the locked versions."""
    environment = wheel.parent / "venv"
    _run(UV, "venv", "--python", sys.executable, environment)
    constraints = ("--constraints", ROOT / "requirements.lock")
    _run(UV, "pip", "install", "--python", environment / "bin" / "python", *constraints, wheel)
    return environment / "bin" / "plimsoll"


@contextmanager
def _started(plimsoll: Path, folder: Path, port: int) -> Iterator["subprocess.Popen[bytes]"]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PLIMSOLL_", "DJANGO_", "VIRTUAL"))
    }
    environment = {**kept, "PLIMSOLL_DATA": str(folder / "data"), "PLIMSOLL_PORT": str(port), "PLIMSOLL_FOLLOW": "off"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([str(plimsoll), "up"], cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


def _fetch(url: str) -> tuple[str, str]:
    with urllib.request.urlopen(url, timeout=10) as response:
        return response.headers["Content-Type"], response.read().decode()


def _fetch_when_up(url: str, process: "subprocess.Popen[bytes]", log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return _fetch(url)[1]
        except urllib.error.HTTPError as error:
            error.close()
            pytest.fail(f"{url}: {error.code}\n{log.read_text()}")
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)


def test_wheel_holds_every_template_and_static_file(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = [path for folder in ("templates", "static") for path in (ROOT / folder).rglob("*") if path.is_file()]
    missing = {f"dashboard/{path.relative_to(ROOT).as_posix()}" for path in sources} - names
    assert sources
    assert not missing
    assert not [name for name in names if name.startswith("tests/")]


def test_installed_wheel_serves_sign_in_page_and_static_files(installed: Path, tmp_path: Path) -> None:
    port = free_port()
    site = f"http://127.0.0.1:{port}"
    with _started(installed, tmp_path, port) as process:
        page = _fetch_when_up(f"{site}/sign-in/", process, tmp_path / "log")
        sheets = re.findall(r'href="(/static/[^"]+\.[0-9a-f]{12}\.css)"', page)
        assert sheets, page
        kind, sheet = _fetch(site + sheets[0])
        assert kind.startswith("text/css")
        assert "{" in sheet
    assert process.returncode == 0, (tmp_path / "log").read_text()
