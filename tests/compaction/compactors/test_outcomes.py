"""Properties of every outcome, over conversations drawn at random and over the recorded ones."""

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bench.threads import split_threads
from compaction.compactors.outcome import CompactionOutcome, CompactorKind, EntryFate, Trigger
from compaction.compactors.run import CompactionRequest, RunPorts
from compaction.compactors.selections import compact_from, compact_full, compact_up_to
from compaction.errors import ConversationTooLong, NothingToCompact, PromptTooLong
from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import Entry
from tests.compaction.compactors.checks import check_outcome
from tests.compaction.compactors.summarizers import Script, summarise_well
from tests.compaction.compactors.talks import NOW, talks
from tests.compaction.recorded import each_recorded, read_recorded

REQUEST = CompactionRequest(trigger=Trigger.AUTO, now=NOW)
KINDS = st.sampled_from([CompactorKind.FULL, CompactorKind.FROM, CompactorKind.UP_TO])


def compact(
    entries: list[Entry], kind: CompactorKind, pivot: str, outside: RunPorts | None = None
) -> CompactionOutcome:
    outside = outside or RunPorts(Script())
    if kind is CompactorKind.FULL:
        return compact_full(entries, REQUEST, outside)
    by_kind = {CompactorKind.FROM: compact_from, CompactorKind.UP_TO: compact_up_to}
    return by_kind[kind](entries, pivot, REQUEST, outside)


@st.composite
def cases(draw: st.DrawFn, fewest_steps: int = 1) -> tuple[list[Entry], CompactorKind, str]:
    entries = draw(talks(fewest_steps))
    visible = [entry for entry in slice_context(entries).entries[1:] if entry.type in ("user", "assistant")]
    assume(visible)
    return entries, draw(KINDS), draw(st.sampled_from(visible)).uuid or ""


@settings(max_examples=100, deadline=None)
@given(cases())
def test_every_outcome_keeps_its_promises_and_leaves_nothing_to_compact(
    case: tuple[list[Entry], CompactorKind, str],
) -> None:
    entries, kind, pivot = case
    try:
        outcome = compact(entries, kind, pivot)
    except NothingToCompact:
        assume(False)
    check_outcome(outcome, entries)
    with pytest.raises(NothingToCompact):
        compact_full(outcome.entries, REQUEST, RunPorts(Script()))


@settings(max_examples=50, deadline=None)
@given(cases())
def test_the_same_input_gives_the_same_outcome(case: tuple[list[Entry], CompactorKind, str]) -> None:
    entries, kind, pivot = case
    try:
        first = compact(entries, kind, pivot)
    except NothingToCompact:
        assume(False)
    assert compact(entries, kind, pivot) == first


@settings(max_examples=50, deadline=None)
@given(cases())
def test_every_entry_the_model_saw_has_exactly_one_fate(case: tuple[list[Entry], CompactorKind, str]) -> None:
    entries, kind, pivot = case
    try:
        outcome = compact(entries, kind, pivot)
    except NothingToCompact:
        assume(False)
    seen = [entry for entry in slice_context(entries).entries if entry.message or entry.type == "attachment"]
    told = [fate.uuid for fate in outcome.fates if fate.fate is not EntryFate.ADDED]
    assert told == [entry.uuid for entry in seen]


@settings(max_examples=100, deadline=None)
@given(cases(fewest_steps=8), st.integers(1, 3), st.one_of(st.none(), st.integers(1, 150)))
def test_a_range_shrunk_by_refusals_still_parts_nothing(
    case: tuple[list[Entry], CompactorKind, str], refusals: int, gap: int | None
) -> None:
    entries, kind, pivot = case
    error = PromptTooLong() if gap is None else PromptTooLong(200_000 + gap, 200_000)
    script = Script([error] * refusals + [summarise_well])
    try:
        outcome = compact(entries, kind, pivot, RunPorts(script))
    except (NothingToCompact, ConversationTooLong):
        return
    check_outcome(outcome, entries)
    assert len(script.requests) == refusals + 1


@pytest.mark.recorded_data
@each_recorded()
def test_recorded_threads_are_compacted_whole_and_in_part(path: Path) -> None:
    for thread in split_threads(read_recorded(path).entries):
        entries = list(follow_chain(thread.entries))
        visible = [entry for entry in slice_context(entries).entries[1:] if entry.type == "user" and entry.message]
        if not visible:
            continue
        pivot = visible[len(visible) // 2].uuid or ""
        for kind in (CompactorKind.FULL, CompactorKind.FROM, CompactorKind.UP_TO):
            try:
                outcome = compact(entries, kind, pivot)
            except NothingToCompact:
                continue
            check_outcome(outcome, entries)
