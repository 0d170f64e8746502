"""What every test stands on; what must happen before Django's settings load is in plugin.py."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.core.cache import cache

from dashboard.static_build import build_static_files
from tests.fakes.messages_api import MessagesApi


def pytest_configure() -> None:
    # The real hasher is slow on purpose; hundreds of test accounts need a quick one.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def pytest_sessionstart() -> None:
    """Pages name static files by content hash, as in production, so they are built: once, in under a second."""
    build_static_files()


@pytest.fixture(autouse=True)
def _forgotten_cache() -> None:
    """What a page remembered in the test before must not be read in this one."""
    cache.clear()


@pytest.fixture
def messages_api() -> Iterator[MessagesApi]:
    """A Messages API on the loopback that keeps every request and does as `script` says."""
    with MessagesApi() as api:
        yield api
