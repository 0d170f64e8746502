"""The table of mechanisms: every file it names exists, holds the names given, every test it cites is there, and every
mechanism has a place where a user meets it."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.urls import resolve

from dashboard.api import api
from dashboard.cli import COMMANDS
from dashboard.views.session import TABS

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "mechanisms.md"
LIBRARY_ONLY = "library only"
_PATH = re.compile(r"[\w/]+\.py")
_NAME = re.compile(r"`([\w.]+)`")
_ENDPOINT = re.compile(r"`(GET|POST|PUT|PATCH|DELETE) (/api/v1/[\w/{}-]+)`")
_COMMAND = re.compile(r"`plimsoll ([a-z]+)`")
_PLACE = re.compile(r"^\| ([\w -]+) \| `(/[\w/-]*)` \|$", re.MULTILINE)
_REMARK = re.compile(r" \([^()]*\)")
_AUTOMATIC = re.compile(r"automatic: \S.*")


def list_rows() -> list[list[str]]:
    """The cells of every row that names a file."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in rows if _PATH.search("".join(row))]


def list_places() -> dict[str, str]:
    """The addresses of the pages that rows name."""
    return dict(_PLACE.findall(TABLE.read_text(encoding="utf-8")))


@cache
def list_endpoints() -> set[tuple[str, str]]:
    paths: dict[str, dict[str, Any]] = api.get_openapi_schema()["paths"]
    return {(method.upper(), path) for path, operations in paths.items() for method in operations}


@pytest.mark.parametrize("row", list_rows(), ids=lambda row: row[0][:60])
def test_every_row_names_what_is_there(row: list[str]) -> None:
    assert len(row) == 6
    sources = [(ROOT / "compaction" / path).read_text(encoding="utf-8") for path in _PATH.findall(row[2])]
    assert sources
    for name in _NAME.findall(row[2]):
        assert any(re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", source) for source in sources), name
    for cited in row[3].split(", "):
        path, _, phrase = cited.partition(": ")
        source = (ROOT / "tests" / "compaction" / path.strip()).read_text(encoding="utf-8")
        assert re.sub(r"\W+", "_", phrase.strip()) in source, cited


@pytest.mark.parametrize("row", list_rows(), ids=lambda row: row[0][:60])
def test_every_row_says_where_a_user_meets_it(row: list[str]) -> None:
    found = row[4]
    endpoints = _ENDPOINT.findall(found)
    assert set(endpoints) <= list_endpoints()
    if found == LIBRARY_ONLY or _AUTOMATIC.fullmatch(found):
        return
    places = list_places()
    for part in _REMARK.sub("", found).split(", "):
        command = _COMMAND.fullmatch(part)
        assert part in places or _ENDPOINT.fullmatch(part) or (command and command[1] in COMMANDS), part


@pytest.mark.parametrize(("place", "address"), list_places().items(), ids=list_places())
def test_every_place_has_a_page(place: str, address: str) -> None:
    found = resolve(address.replace("ID", "1").replace("TEAM", "team"))
    assert found.kwargs.get("tab", "timeline") in {*TABS, "timeline"}
    assert any(place in row[4] for row in list_rows())
