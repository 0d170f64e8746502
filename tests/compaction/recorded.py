"""The recorded sessions that lie beside the checkout, for tests that run over all of them."""

from functools import cache
from pathlib import Path

import pytest

from compaction.transcripts.transcript import Transcript, read_transcript

RECORDED_DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"


def list_recorded(*, has_real_usage: bool = False) -> list[Path]:
    """Every recorded transcript, main threads and sub-agents. With `has_real_usage` without those whose answers came
    from a scripted API."""
    found = sorted(RECORDED_DATA.rglob("*.jsonl"))
    if not has_real_usage:
        return found
    return [path for path in found if not path.relative_to(RECORDED_DATA).parts[0].startswith("client-")]


def each_recorded(*, has_real_usage: bool = False) -> pytest.MarkDecorator:
    """Run a test once per recorded transcript; without them there is one run, which skips with the reason."""
    missing = pytest.mark.skip(reason="the recorded sessions are not beside this checkout")
    cases = [pytest.param(path, id=path.stem[-40:]) for path in list_recorded(has_real_usage=has_real_usage)]
    return pytest.mark.parametrize("path", cases or [pytest.param(Path(), marks=missing)])


@cache
def read_recorded(path: Path) -> Transcript:
    """One recorded transcript, read once per run."""
    return read_transcript(path.read_bytes())
