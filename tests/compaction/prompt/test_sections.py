import pytest

from compaction.errors import SectionNameTaken, UnreasonedSection
from compaction.prompt.sections import DYNAMIC_BOUNDARY, SectionRegistry


def test_sections_are_computed_once_until_cleared() -> None:
    asked: list[str] = []
    registry = SectionRegistry()
    registry.add("intro", lambda: asked.append("intro") or "hello", is_shared=True)  # type: ignore[func-returns-value]
    registry.add("memory", lambda: asked.append("memory") or "notes")  # type: ignore[func-returns-value]
    registry.add("language", lambda: None)
    registry.add_volatile("mcp", lambda: f"turn {len(asked)}", reason="servers come and go between turns")
    assert registry.resolve() == ("hello", DYNAMIC_BOUNDARY, "notes", "turn 2")
    assert registry.resolve() == ("hello", DYNAMIC_BOUNDARY, "notes", "turn 2")
    assert asked == ["intro", "memory"]
    registry.clear()
    registry.resolve()
    assert asked == ["intro", "memory", "intro", "memory"]


def test_volatile_section_needs_a_reason_and_a_name_of_its_own() -> None:
    registry = SectionRegistry()
    with pytest.raises(UnreasonedSection, match="needs a written reason"):
        registry.add_volatile("mcp", lambda: "x", reason="  ")
    registry.add("mcp", lambda: "x")
    with pytest.raises(SectionNameTaken, match="already a section"):
        registry.add("mcp", lambda: "y")
