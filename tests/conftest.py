"""What every test stands on; what must happen before Django's settings load is in plugin.py."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from django.conf import settings
from django.core.cache import cache

from dashboard.jobs import lease
from dashboard.static_build import build_static_files
from tests.dashboard.running import run_plimsoll
from tests.fakes.messages_api import MessagesApi


def pytest_configure() -> None:
    # Other tests run beside these: how long one example took says nothing about the code.
    hypothesis.settings.register_profile(
        "side by side", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("side by side")
    # The real hasher is slow on purpose; hundreds of test accounts need a quick one.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def pytest_sessionstart() -> None:
    """Pages name static files by content hash, as in production, so they are built: once, in under a second."""
    build_static_files()


@pytest.fixture(autouse=True)
def _forgotten_cache() -> None:
    """What a page remembered in the test before must not be read in this one."""
    cache.clear()


@pytest.fixture(autouse=True)
def _leases_kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside one transaction, where nobody else sees the job of a test, whoever tells its progress takes the lease for
    lost: on a busy machine a job may last that long."""
    marker = request.node.get_closest_marker("django_db")
    if marker and not marker.kwargs.get("transaction") and "transactional_db" not in request.fixturenames:
        monkeypatch.setattr(lease, "PROGRESS_EVERY_SECONDS", 3600.0)


@pytest.fixture(scope="session")
def migrated_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with an empty database, to be copied: preparing one takes seconds."""
    folder = tmp_path_factory.mktemp("migrated")
    done = run_plimsoll(folder, "migrate", "-v", "0")
    assert done.returncode == 0, done.stderr
    return folder / "data"


@pytest.fixture
def prepared(migrated_folder: Path, tmp_path: Path) -> Path:
    """A folder for `plimsoll` to run in, with a database in its data folder."""
    shutil.copytree(migrated_folder, tmp_path / "data")
    return tmp_path


@pytest.fixture
def messages_api() -> Iterator[MessagesApi]:
    """A Messages API on the loopback that keeps every request and does as `script` says."""
    with MessagesApi() as api:
        yield api
