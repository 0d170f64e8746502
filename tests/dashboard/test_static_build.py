"""Building the static files: only when needed, and whole after a kill at any point."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from dashboard import static_build
from dashboard.static_build import build_static_files


@pytest.fixture
def source(tmp_path: Path, settings: Settings) -> Path:
    """A small tree of static files instead of the real one, built below the same scratch folder."""
    source = tmp_path / "source"
    (source / "css").mkdir(parents=True)
    (source / "css" / "site.css").write_text("body { background: url(dot.svg) }\n" + "/* */\n" * 200)
    (source / "css" / "dot.svg").write_text("<svg/>")
    settings.STATICFILES_DIRS = [source]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    settings.STATIC_ROOT = tmp_path / "static"
    return source


def built_paths(tmp_path: Path) -> dict[str, str]:
    paths: dict[str, str] = json.loads((tmp_path / "static" / "staticfiles.json").read_text())["paths"]
    return paths


def test_files_are_hashed_compressed_and_built_once(source: Path, tmp_path: Path) -> None:
    assert build_static_files() is True
    assert build_static_files() is False
    paths = built_paths(tmp_path)
    css = tmp_path / "static" / paths["css/site.css"]
    assert Path(paths["css/dot.svg"]).name in css.read_text()
    assert css.with_name(f"{css.name}.gz").is_file()
    assert not (tmp_path / "static" / "css" / "site.css").exists()
    assert not list(tmp_path.glob("static.build-*"))


def test_changed_added_and_removed_files_cause_a_build(source: Path, tmp_path: Path) -> None:
    build_static_files()
    before = built_paths(tmp_path)
    (source / "css" / "dot.svg").write_text("<svg></svg>")
    assert build_static_files() is True
    assert built_paths(tmp_path)["css/dot.svg"] != before["css/dot.svg"]
    assert not (tmp_path / "static" / before["css/dot.svg"]).exists()
    (source / "new.txt").write_text("x")
    assert build_static_files() is True
    (source / "new.txt").unlink()
    assert build_static_files() is True
    os.utime(source / "css" / "site.css", (1, 1))
    assert build_static_files() is True
    assert build_static_files() is False


class Killed(BaseException):
    """Stands for kill -9: nothing after it runs, no clean-up either."""


@pytest.mark.parametrize("step", [0, 1, 2])
def test_kill_in_the_middle_is_repaired_by_the_next_start(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    build_static_files()
    (source / "new.txt").write_text("x")
    rename, calls = Path.rename, iter(range(9))

    def dying_rename(path: Path, target: Any) -> Path:
        if next(calls) == step - 1:
            raise Killed
        return rename(path, target)

    def dying_collect(folder: Path) -> None:
        folder.mkdir()
        (folder / "half").touch()
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", dying_rename)
        if step == 0:
            patched.setattr(static_build, "_collect_into", dying_collect)
        with pytest.raises(Killed):
            build_static_files()
    assert build_static_files() is True
    assert "new.txt" in built_paths(tmp_path)
    assert not list(tmp_path.glob("static.build-*"))


def test_reference_to_a_missing_file_stops_the_build(source: Path, tmp_path: Path) -> None:
    build_static_files()
    before = built_paths(tmp_path)
    (source / "css" / "site.css").write_text("body { background: url(missing.svg) }")
    with pytest.raises(ValueError, match=r"missing\.svg"):
        build_static_files()
    assert built_paths(tmp_path) == before
