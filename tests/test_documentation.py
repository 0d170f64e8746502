"""README, docs and Makefile: links, commands, paths and variables in them exist, and the README stays short."""

import re
from pathlib import Path

import pytest

from dashboard.cli import COMMANDS
from tests.test_retired_words import RETIRED

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
CHAPTERS = sorted([README, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
# mechanisms.md has shorter paths and a test of its own: tests/compaction/test_mechanisms.py.
CHAPTERS_WITH_PATHS = [path for path in CHAPTERS if path.name != "mechanisms.md"]
MOST_README_LINES = 120
_LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:`|^ +|bin/)plimsoll ([a-z]+)", re.MULTILINE)
_TARGET = re.compile(r"(?:`|^ +)(?:[A-Z_]+=\S+ )*make ([a-z]+)", re.MULTILINE)
_SOURCE_PATH = re.compile(r"`((?:bench|compaction|dashboard|templates|tests)/[\w/.-]*)`")
_SETTING = re.compile(r"\b(?:PLIMSOLL_[A-Z_]+|DATABASE_URL)\b")

pytestmark = pytest.mark.skipif(not README.is_file(), reason="the tests are not in a checkout: there are no docs")


def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings of a chapter, as code hosts build them."""
    titles = _HEADING.findall(_CODE_BLOCK.sub("", path.read_text()))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.name)
def test_links_lead_to_files_and_headings(chapter: Path) -> None:
    for name, anchor in _LINK.findall(chapter.read_text()):
        target = chapter.parent / name if name else chapter
        assert target.is_file(), name
        assert not anchor or anchor in anchors(target), f"{name}#{anchor}"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.name)
def test_commands_exist(chapter: Path) -> None:
    text = chapter.read_text()
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(_COMMAND.findall(text)) <= set(COMMANDS)
    assert set(_TARGET.findall(text)) <= targets


@pytest.mark.parametrize("chapter", CHAPTERS_WITH_PATHS, ids=lambda path: path.name)
def test_source_paths_exist(chapter: Path) -> None:
    assert [path for path in _SOURCE_PATH.findall(chapter.read_text()) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("chapter", [*CHAPTERS_WITH_PATHS, ROOT / "CHANGELOG.md"], ids=lambda path: path.name)
def test_chapters_use_no_retired_words(chapter: Path) -> None:
    retired = re.compile(rf"\b(?:{'|'.join(RETIRED)})\b", re.IGNORECASE)
    assert [found[0] for found in retired.finditer(chapter.read_text())] == []


def test_readme_is_short_and_names_commands() -> None:
    text = README.read_text()
    assert len(text.splitlines()) <= MOST_README_LINES
    assert {"run", "demo", "check", "test"} <= set(_TARGET.findall(text))
    assert {"import", "connect", "watch"} <= set(_COMMAND.findall(text))


def test_every_chapter_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    missing = [path.name for path in (ROOT / "docs").glob("*.md") if f"({path.name})" not in index]
    assert missing == ["README.md"]


def test_configuration_lists_every_setting() -> None:
    listed = re.findall(r"^\| `(\w+)`", (ROOT / "docs" / "configuration.md").read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == set(_SETTING.findall((ROOT / "dashboard" / "settings.py").read_text()))


def test_slow_tests_that_make_check_leaves_out_exist() -> None:
    names = re.findall(r"^SLOW := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split()
    assert [name for name in names if not (ROOT / "tests" / "dashboard" / f"{name}.py").is_file()] == []
