"""The prompt: text only at both ends, nine sections, three variants, instructions appended."""

import pytest

from compaction.compactors.summary.prompt import (
    SECTIONS,
    TEXT_ONLY_TEXT,
    build_prompt,
    build_second_prompt,
    list_sections,
    merge_instructions,
)
from compaction.ports import Variant


@pytest.mark.parametrize("variant", list(Variant))
def test_every_variant_says_text_only_at_both_ends_and_names_nine_sections_in_order(variant: Variant) -> None:
    prompt = build_prompt(variant, custom_instructions="focus on auth")
    assert prompt.startswith(TEXT_ONLY_TEXT)
    assert TEXT_ONLY_TEXT in prompt[-len(TEXT_ONLY_TEXT) - 80 :]
    assert prompt.count(TEXT_ONLY_TEXT) == 2
    assert prompt.index("<analysis>") < prompt.index("<summary>")
    places = [prompt.index(f"{number}. {name}: ") for number, name in enumerate(list_sections(variant), start=1)]
    assert len(places) == 9
    assert places == sorted(places)
    assert "Additional Instructions:\nfocus on auth\n" in prompt


def test_variants_differ_where_they_must() -> None:
    assert "not to be summarised again" in build_prompt(Variant.FROM)
    assert list_sections(Variant.FROM) == SECTIONS
    assert list_sections(Variant.UP_TO)[7:] == ("Work Completed", "Context for Continuing Work")
    assert list_sections(Variant.UP_TO)[:7] == SECTIONS[:7]
    assert "Current Work" not in build_prompt(Variant.UP_TO)


@pytest.mark.parametrize("blank", [None, "", "  \n"])
def test_blank_instructions_are_no_instructions(blank: str | None) -> None:
    assert build_prompt(Variant.FULL, custom_instructions=blank) == build_prompt(Variant.FULL)
    assert "Additional Instructions" not in build_prompt(Variant.FULL)


@pytest.mark.parametrize(
    ("user", "hooks", "merged"),
    [
        ("mine", ("theirs", None, "  "), "mine\n\ntheirs"),
        (None, ("theirs", "others"), "theirs\n\nothers"),
        ("mine", (), "mine"),
        (" ", (None,), None),
    ],
)
def test_the_users_instructions_come_first(user: str | None, hooks: tuple[str | None, ...], merged: str | None) -> None:
    assert merge_instructions(user, hooks) == merged


def test_the_second_ask_names_only_what_is_missing_under_its_own_number() -> None:
    ask = build_second_prompt(("Work Completed",), Variant.UP_TO)
    assert "8. Work Completed" in ask
    assert "Pending Tasks" not in ask
    assert ask.startswith(TEXT_ONLY_TEXT)
