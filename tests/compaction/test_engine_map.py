"""The map in compaction/__init__.py: its doors and rules can be imported, and its floors are the packages."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import compaction
from tests.import_rules import FLOORS

MAP = compaction.__doc__ or ""
ROOT = Path(compaction.__file__).parent


def read_section(title: str) -> list[str]:
    """Return the lines of one section of the map."""
    section = MAP.split(f"{title}", 1)[1].split("\n\n", 1)[0]
    return [line.strip() for line in section.splitlines()[1:]]


DOORS = [line.split()[0] for line in read_section("Doors:")]


@pytest.mark.parametrize(
    "door", [*DOORS, *(f"compactors.selections.{name}" for name in ("compact_from", "compact_up_to"))]
)
def test_door_can_be_imported(door: str) -> None:
    module, _, name = door.rpartition(".")
    assert callable(getattr(import_module(f"compaction.{module}"), name))
    assert name in MAP


@pytest.mark.parametrize("rule", [line.split()[0] for line in read_section("Rules by file:")])
def test_rule_names_a_file(rule: str) -> None:
    assert (ROOT / f"{rule.replace('.', '/')}.py").is_file()


def test_map_names_the_floors_in_order() -> None:
    floors = re.findall(r"[a-z]+", " ".join(read_section("Floors")).replace(" and ", " "))
    assert floors == [*FLOORS, "audit"]
    assert sorted(floors) == sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
