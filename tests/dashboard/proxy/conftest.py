"""A fake upstream and the forwarder before it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard.proxy.serving import Serving, serving
from tests.fakes.raw_upstream import RawUpstream


@pytest.fixture
def upstream() -> Iterator[RawUpstream]:
    with RawUpstream() as started:
        yield started


@pytest.fixture
def proxy(upstream: RawUpstream, tmp_path: Path) -> Iterator[Serving]:
    with serving(upstream.url, tmp_path) as started:
        yield started
