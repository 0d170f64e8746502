"""The rules of the test run itself: scratch data, and no silent skip under CI=true."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from django.conf import settings

SKIPS = """
    import pytest

    @pytest.mark.skip(reason="no browser here")
    def test_that_skips():
        pass
"""


def _run_pytest(folder: Path, source: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    (folder / "test_planted.py").write_text(textwrap.dedent(source))
    command = [sys.executable, "-m", "pytest", "-p", "tests.plugin", "-p", "no:django", "-p", "no:randomly", "-q"]
    command += ["-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(folder), str(folder)]
    root = Path(__file__).parents[1]
    return subprocess.run(
        command, cwd=root, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_skip_fails_under_ci(tmp_path: Path) -> None:
    done = _run_pytest(tmp_path, SKIPS, CI="true")
    assert done.returncode == 1
    assert "CI=true allows no skips" in done.stdout
    assert "no browser here" in done.stdout


def test_skipped_module_fails_under_ci(tmp_path: Path) -> None:
    done = _run_pytest(tmp_path, "import pytest\npytest.importorskip('no_such_module_here')", CI="true")
    assert done.returncode != 0
    assert "CI=true allows no skips" in done.stdout


def test_skip_passes_on_a_developers_machine(tmp_path: Path) -> None:
    done = _run_pytest(tmp_path, SKIPS, CI="")
    assert done.returncode == 0, done.stdout


def test_tests_never_use_a_persons_data_folder(tmp_path: Path) -> None:
    seen = "import os\ndef test_folder():\n    assert os.environ['PLIMSOLL_DATA'] != '/precious'\n"
    assert _run_pytest(tmp_path, seen, PLIMSOLL_DATA="/precious").returncode == 0


@pytest.mark.skipif("PLIMSOLL_TEST_DATABASE_URL" in os.environ, reason="this run is on PostgreSQL")
def test_database_lies_in_the_scratch_folder() -> None:
    assert Path(settings.DATABASES["default"]["TEST"]["NAME"]).is_relative_to(os.environ["PLIMSOLL_DATA"])
