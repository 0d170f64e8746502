"""Every spelling of a model's name leads to one base."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.llm.names import Platform, read_model_name


@pytest.mark.parametrize(
    ("model", "base", "version"),
    [
        ("claude-opus-5-5", "claude-opus-5-5", (5, 5)),
        ("claude-opus-5-5[1m]", "claude-opus-5-5", (5, 5)),
        ("Claude-Opus-4-5-20251101", "claude-opus-4-5", (4, 5)),
        ("claude-opus-4.6", "claude-opus-4-6", (4, 6)),
        ("claude-4-5-haiku", "claude-haiku-4-5", (4, 5)),
        ("claude-sonnet-4-20250514", "claude-sonnet-4", (4, 0)),
        ("claude-opus-4-0", "claude-opus-4", (4, 0)),
        ("claude-opus-5-latest", "claude-opus-5", (5, 0)),
        ("claude-opus-5-2026-06-01", "claude-opus-5", (5, 0)),
        ("claude-3-5-sonnet-20241022", "claude-3-5-sonnet", (3, 5)),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet", (3, 7)),
        ("claude-3-opus-20240229", "claude-3-opus", (3, 0)),
        ("claude-mythos-5-1", "claude-mythos-5-1", (5, 1)),
        ("us.anthropic.claude-opus-4-6-v1:0", "claude-opus-4-6", (4, 6)),
        ("global.anthropic.claude-opus-5-5", "claude-opus-5-5", (5, 5)),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", (4, 5)),
        ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0[1m]", "claude-sonnet-4-5", (4, 5)),
        ("us-gov.anthropic.claude-3-7-sonnet-20250219-v1:0", "claude-3-7-sonnet", (3, 7)),
        ("arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-1-20250805-v1:0",
         "claude-opus-4-1", (4, 1)),
        ("claude-opus-4-5@20251101", "claude-opus-4-5", (4, 5)),
        ("claude-sonnet-5-5@default", "claude-sonnet-5-5", (5, 5)),
        ("vertex_ai/claude-sonnet-4-5@20250929", "claude-sonnet-4-5", (4, 5)),
        ("anthropic/claude-opus-4.5", "claude-opus-4-5", (4, 5)),
    ],
)  # fmt: skip
def test_every_spelling_of_a_model_leads_to_its_base(model: str, base: str, version: tuple[int, int]) -> None:
    name = read_model_name(model)
    assert (name.base, name.version) == (base, version)


@pytest.mark.parametrize(
    "model",
    ["opus", "sonnet[1m]", "gpt-5", "glm-4.6", "<synthetic>", "", "claude-2", "claude-zebra-9", "claude-opus-\u0665"],
)
def test_a_name_that_is_no_known_claude_has_no_version(model: str) -> None:
    assert read_model_name(model).version is None


def test_platform_region_date_and_suffix_are_kept_apart() -> None:
    name = read_model_name("eu.anthropic.claude-sonnet-4-5-20250929-v1:0[1m]")
    assert (name.platform, name.is_regional, name.dated) == (Platform.BEDROCK, True, "20250929")
    assert name.key == "claude-sonnet-4-5[1m]"
    assert not read_model_name("global.anthropic.claude-opus-5-5").is_regional
    assert read_model_name("claude-opus-4-5@20251101").platform is Platform.VERTEX
    assert read_model_name("claude-opus-4-5").platform is Platform.ANTHROPIC


@given(st.text(max_size=200))
def test_any_text_reads_as_a_name(model: str) -> None:
    name = read_model_name(model)
    assert (name.family is None) == (name.version is None)
