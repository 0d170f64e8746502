"""The table of mechanisms: every file it names exists, holds the names given, and every test it cites is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "mechanisms.md"
_PATH = re.compile(r"[\w/]+\.py")
_NAME = re.compile(r"`([\w.]+)`")


def list_rows() -> list[list[str]]:
    """The cells of every row that names a file."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in rows if _PATH.search("".join(row))]


@pytest.mark.parametrize("row", list_rows(), ids=lambda row: row[0][:60])
def test_every_row_names_what_is_there(row: list[str]) -> None:
    assert len(row) == 5
    sources = [(ROOT / "compaction" / path).read_text(encoding="utf-8") for path in _PATH.findall(row[2])]
    assert sources
    for name in _NAME.findall(row[2]):
        assert any(re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", source) for source in sources), name
    for cited in row[3].split(", "):
        path, _, phrase = cited.partition(": ")
        source = (ROOT / "tests" / "compaction" / path.strip()).read_text(encoding="utf-8")
        assert re.sub(r"\W+", "_", phrase.strip()) in source, cited
