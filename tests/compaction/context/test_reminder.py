"""The context reminder: one meta user message in front, instruction files within their limit."""

from compaction.context.reminder import (
    CUT_MARK,
    ContextSection,
    InstructionFile,
    build_context_reminder,
    build_instruction_section,
)
from compaction.context.tokens import count_text_tokens
from compaction.transcripts.flatten import flatten
from tests.compaction.making import say


def test_the_reminder_is_one_meta_message_before_the_first() -> None:
    reminder = build_context_reminder(
        [ContextSection("Todos", "- test it"), ContextSection("Plan", "Go."), ContextSection("Empty", " ")]
    )
    assert reminder is not None
    assert reminder.is_meta
    (message,) = flatten([reminder, say("hello")])
    words = message.content[0].text  # type: ignore[union-attr]
    assert words.startswith("<system-reminder>\n")
    assert "# Todos\n- test it\n# Plan\nGo.\n" in words
    assert "Empty" not in words
    assert words.endswith("</system-reminder>")
    assert message.content[1].text == "hello"  # type: ignore[union-attr]


def test_without_context_there_is_no_reminder() -> None:
    assert build_context_reminder([]) is None
    assert build_context_reminder([ContextSection("Todos", "")]) is None


def test_instruction_files_share_forty_thousand_tokens() -> None:
    files = [InstructionFile(f"/{name}.md", "x" * 80_000) for name in "abc"]
    section = build_instruction_section(files)
    assert section is not None
    assert count_text_tokens(section.content) <= 40_000
    assert section.content.count("## /") == 2
    assert section.content.endswith(CUT_MARK)


def test_few_instructions_are_given_whole() -> None:
    section = build_instruction_section([InstructionFile("/a.md", "Be brief."), InstructionFile("/b.md", "Be kind.")])
    assert section == ContextSection("Project instructions", "## /a.md\nBe brief.\n## /b.md\nBe kind.")
    assert build_instruction_section([]) is None
    assert build_instruction_section([InstructionFile("/a", "long")], limit_tokens=1) is None
