"""Every row of the table of models answers in every place that asks for a fact about a model."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from compaction.cache.causes import CAUSES, Cause
from compaction.cache.policy import CachePolicy
from compaction.context.call_costs import compute_cost, compute_total_usd
from compaction.context.forecast import compute_next_call_cost
from compaction.context.margins import RESERVE_CAP_TOKENS
from compaction.context.policy import Policy
from compaction.context.thresholds import compute_thresholds
from compaction.context.windows import ModelInUse, compute_reserve, get_max_output, get_window
from compaction.llm.lookup import (
    FIRST_KEEPING_THINKING,
    UNJUDGED_FAMILIES,
    get_least_cached_tokens,
    get_model_row,
    get_nearest_model_row,
    get_small_model,
    keeps_system_messages,
    keeps_thinking,
    list_offered_models,
)
from compaction.llm.names import FAMILIES, LONG_WINDOW_SUFFIX, read_model_name
from compaction.llm.prices import _OWN_TABLE, FAST_FACTORS, get_list_price
from compaction.llm.table import LONG_WINDOW_TOKENS, MODELS, Model, list_current_models
from compaction.prompt.linter import LintRule, lint_request
from compaction.prompt.request import read_request
from compaction.transcripts.entries import Usage
from tests.compaction.cache.builders import body, text

ROOT = Path(__file__).resolve().parents[3]
NOW = datetime(2026, 11, 16, tzinfo=UTC)
# Rows whose window, or whose price, is on no record.
WITHOUT_WINDOW = WITHOUT_PRICE = {"claude-mythos-preview"}
USAGE = Usage(input_tokens=10, cache_creation_tokens=1_000, cache_read_tokens=20_000, output_tokens=300)

each_model = pytest.mark.parametrize(("name", "model"), MODELS.items(), ids=list(MODELS))


def _spell(name: str) -> Iterator[str]:
    yield from (name, f"{name}-20260101", f"anthropic/{name}", f"us.anthropic.{name}-20260101-v1:0", f"{name}@20260101")


@each_model
def test_every_spelling_finds_its_row(name: str, model: Model) -> None:
    # A name without a version is read in one spelling only.
    for spelling in (name,) if name in WITHOUT_WINDOW else _spell(name):
        assert get_model_row(read_model_name(spelling)) is model
        assert get_nearest_model_row(read_model_name(spelling)) is model
    assert (read_model_name(name).family in FAMILIES) == (name not in WITHOUT_WINDOW)


@each_model
@pytest.mark.parametrize("is_claude_code", [True, False])
def test_every_model_has_window_reserve_and_lines(name: str, model: Model, is_claude_code: bool) -> None:  # noqa: FBT001
    in_use = ModelInUse(name, is_claude_code=is_claude_code, client_version="2.1.325")
    window, lines = get_window(in_use), compute_thresholds(Policy(), in_use)
    assert compute_reserve(in_use).tokens == RESERVE_CAP_TOKENS
    if name in WITHOUT_WINDOW:
        assert (window, lines) == (None, None)
        return
    assert window is not None
    assert lines is not None
    expected = model.client_window_tokens if is_claude_code else model.window_tokens
    assert window.tokens == lines.window.tokens == expected
    long = get_window(ModelInUse(name + LONG_WINDOW_SUFFIX, is_claude_code=is_claude_code))
    assert long is not None
    assert long.tokens == LONG_WINDOW_TOKENS
    limit = get_max_output(in_use)
    asked = model.client_max_output_tokens if is_claude_code else None
    assert (limit.tokens if limit else None) == (asked or model.max_output_tokens)


@each_model
def test_every_model_has_a_price_or_is_named_as_one_without(name: str, model: Model) -> None:
    functions = (compute_cost, compute_total_usd, compute_next_call_cost)
    prices = (get_list_price(name, NOW), *(function(USAGE, name, NOW) for function in functions))
    assert [price is None for price in prices] == [name in WITHOUT_PRICE] * len(prices)
    price = get_list_price(name, NOW)
    if price is not None and model.max_output_tokens is not None:
        assert None not in (price.rates.read_mtok_usd, price.rates.write_5m_mtok_usd, price.rates.write_1h_mtok_usd)


@each_model
def test_the_linter_knows_the_least_prefix_of_every_current_model(name: str, model: Model) -> None:
    assert get_least_cached_tokens(name) == model.least_cached_tokens
    assert model.least_cached_tokens is not None or model.max_output_tokens is None
    request = read_request(body(system=[text("Hi.", marked="5m")], tools=[], model=name))
    has_finding = any(finding.rule is LintRule.BELOW_MINIMUM for finding in lint_request(request))
    assert has_finding == (model.least_cached_tokens is not None)


@each_model
def test_every_model_keeps_and_is_judged_as_its_row_says(name: str, model: Model) -> None:
    assert (keeps_thinking(name), keeps_system_messages(name)) == (model.keeps_thinking, model.keeps_system_messages)
    assert CachePolicy().judges(name, None, USAGE) == model.is_judged


@each_model
def test_every_current_model_with_a_price_is_offered(name: str, model: Model) -> None:
    is_offered = model.max_output_tokens is not None and name not in WITHOUT_PRICE
    assert (name in list_offered_models(NOW)) == is_offered
    assert (name in list_current_models()) == (model.max_output_tokens is not None)


def test_rows_of_a_generation_and_of_a_family_agree_where_unknown_models_take_after_them() -> None:
    windows: dict[int, set[int | None]] = {}
    judged: dict[str, set[bool]] = {}
    for name, model in MODELS.items():
        parsed = read_model_name(name)
        if parsed.version is not None and parsed.family is not None:
            windows.setdefault(parsed.version[0], set()).add(model.client_window_tokens)
            judged.setdefault(parsed.family, set()).add(model.is_judged)
    assert all(len(values) == 1 for values in windows.values()), windows
    assert all(len(values) == 1 for values in judged.values()), judged
    assert [family for family, values in sorted(judged.items()) if values == {False}] == list(UNJUDGED_FAMILIES)
    assert MODELS[get_small_model()].is_small


def test_versions_that_keep_thinking_are_the_ones_the_advice_names() -> None:
    assert FIRST_KEEPING_THINKING == {"opus": (4, 5), "sonnet": (4, 6), "haiku": (5, 5)}
    assert "(Opus from 4.5, Sonnet from 4.6, Haiku from 5.5)" in CAUSES[Cause.THINKING_DROPPED].advice


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("claude-opus-5-9", "claude-opus-5-5"), ("claude-opus-4-2", "claude-opus-4-1"),
        ("claude-haiku-5", "claude-haiku-4-5"), ("claude-fable-6", "claude-fable-5-2"),
        ("claude-2-1-sonnet", "claude-3-sonnet"),
    ],
)  # fmt: skip
def test_an_unknown_version_keeps_what_the_nearest_older_one_keeps(name: str, like: str) -> None:
    assert get_model_row(read_model_name(name)) is None
    assert get_nearest_model_row(read_model_name(name)) is MODELS[like]
    assert (get_least_cached_tokens(name), get_list_price(name, NOW)) == (None, None)


def test_prices_of_our_own_are_for_models_of_the_table() -> None:
    assert set(_OWN_TABLE) | set(FAST_FACTORS) <= set(MODELS)


_NEW_FAMILY = """
from compaction.llm import table
table.MODELS["claude-saga-6"] = table.Model(least_cached_tokens=256, keeps_thinking=False)
from compaction.cache import causes, policy as judging
from compaction.context import policy, thresholds, windows
from compaction.llm import lookup
from compaction.transcripts.entries import Usage
for is_claude_code in (True, False):
    in_use = windows.ModelInUse("claude-saga-6-20270101", is_claude_code=is_claude_code)
    assert thresholds.compute_thresholds(policy.Policy(), in_use).window.tokens == 1_000_000
assert lookup.get_least_cached_tokens("claude-saga-6") == 256
assert (lookup.keeps_thinking("claude-saga-6"), lookup.keeps_system_messages("claude-saga-6")) == (0, 1)
assert judging.CachePolicy().judges("claude-saga-6", None, Usage(input_tokens=1))
assert "claude-saga-6" in table.list_current_models() and "claude-saga-6" not in lookup.list_offered_models()
"""


def test_a_model_of_a_new_family_is_one_row() -> None:
    done = subprocess.run([sys.executable, "-c", _NEW_FAMILY], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


_MODEL = re.compile(r"\bclaude-(?:[a-z]+-\d+(?:-\d+)?|\d+(?:-\d+)?-[a-z]+)\b")


def _list_literals(folder: str) -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / folder).rglob("*.py")):
        tree = ast.parse(path.read_text())
        documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        docstrings = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, documented)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in docstrings:
                yield str(path.relative_to(ROOT)), node.value


def test_no_other_file_of_the_engine_names_a_model_or_a_family() -> None:
    named = re.compile(rf"\b(?:{'|'.join(FAMILIES)})\b", re.IGNORECASE)
    found = [(path, value) for path, value in _list_literals("compaction") if named.search(value)]
    assert {path for path, _ in found} == {"compaction/llm/prices.py", "compaction/llm/table.py"}, found


def test_models_that_the_product_names_as_examples_are_in_the_table() -> None:
    named = {(path, model) for path, value in _list_literals("dashboard") for model in _MODEL.findall(value)}
    assert len(named) > 10
    assert {(path, model) for path, model in named if get_model_row(read_model_name(model)) is None} == set()
