"""What a command loads before it can begin: nothing that only other commands, or an import with news, need."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.loading import loading
from tests.compaction.making import make_line
from tests.dashboard.running import START_SECONDS, environment_for

LIBRARIES = {"celery", "kombu", "httpx2", "genai_prices", "plotly", "ninja", "pydantic", "hyperscan", "psycopg"}
PAGES = "dashboard.urls"
READING = "dashboard.management.import_run"
SESSION = "11111111-2222-4333-8444-555555555555"
LISTING = """
import sys
from pathlib import Path
from dashboard.cli import main
try:
    main()
finally:
    Path("loaded").write_text(" ".join(sys.modules))
"""


def list_loaded(folder: Path, *arguments: str) -> set[str]:
    """Every module that a command had loaded when it was done."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", LISTING, *arguments],
        env=environment_for(folder),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set((folder / "loaded").read_text().split())


def test_commands_load_nothing_that_others_need(tmp_path: Path) -> None:
    line = make_line("user", sessionId=SESSION, message={"role": "user", "content": "a"})
    (tmp_path / "talk.jsonl").write_bytes(line)
    assert READING in list_loaded(tmp_path, "import", "talk.jsonl")
    for command in (("import", "talk.jsonl"), ("signinlink",)):
        loaded = list_loaded(tmp_path, *command)
        assert f"dashboard.management.commands.{command[0]}" in loaded
        assert loaded & {*LIBRARIES, PAGES, READING} == set(), command


def test_collector_rests_while_loading_and_works_on_after_an_error() -> None:
    with loading():
        assert not gc.isenabled()
    with pytest.raises(ImportError), loading():
        raise ImportError
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
