"""What hooks and status lines tell, beside what lines and reports tell of the same."""

from datetime import UTC, datetime, timedelta

from compaction.timeline.client_reports import UNKNOWN_REASON, merge_client_reports
from compaction.timeline.observations import (
    REPORT,
    ClientReport,
    CompactionRecord,
    LineKind,
    Observation,
    Response,
)
from compaction.timeline.sources import choose_more_complete
from compaction.transcripts.entries import Usage

START = datetime(2026, 5, 1, 10, tzinfo=UTC)


def at(minute: float) -> datetime:
    return START + timedelta(minutes=minute)


def hook(event: str, minute: float, **told: object) -> Observation:
    client = ClientReport(event, **told)  # type: ignore[arg-type]
    return Observation(f"hook:{event}:{minute}", LineKind.HOOK, REPORT, at=at(minute), client_report=client)


def line(kind: LineKind, minute: float, **fields: object) -> Observation:
    return Observation(f"{kind}:{minute}", kind, "line", at=at(minute), **fields)  # type: ignore[arg-type]


def answer(minute: float, *, is_sidechain: bool = False) -> Observation:
    told = Response(f"msg_{minute}", Usage())
    return line(LineKind.RESPONSE, minute, response=told, is_sidechain=is_sidechain)


def list_kinds(*facts: Observation) -> list[LineKind]:
    return [fact.kind for fact in merge_client_reports(sorted(facts, key=lambda fact: fact.at or START))]


def test_lines_alone_are_left_as_they_are() -> None:
    facts = [line(LineKind.PROMPT, 0), answer(1)]
    assert merge_client_reports(facts) is facts


def test_hooks_stand_for_lines_that_nobody_wrote() -> None:
    hooks = [
        hook("SessionStart", 0, detail="resume"),
        hook("UserPromptSubmit", 1, prompt_id="p"),
        hook("UserPromptSubmit", 1.1, prompt_id="p"),
        hook("Stop", 2),
    ]
    assert list_kinds(*hooks) == [
        LineKind.RESTART,
        LineKind.PROMPT,
        LineKind.HOOK,
        LineKind.TURN_END,
    ]
    assert list_kinds(*hooks, line(LineKind.PROMPT, 1)).count(LineKind.PROMPT) == 1


def test_attempt_that_the_turn_ends_without_a_compaction_has_failed() -> None:
    began, ended = hook("PreCompact", 1), hook("Stop", 2)
    assert list_kinds(began) == [LineKind.HOOK]  # it may still be at work
    (failed, _) = merge_client_reports([began, ended])
    assert (failed.kind, failed.name) == (LineKind.COMPACTION_REPORT, UNKNOWN_REASON)
    boundary = line(LineKind.BOUNDARY, 1.5, compaction=CompactionRecord())
    assert list_kinds(began, boundary, ended)[0] is LineKind.HOOK
    reported = line(LineKind.COMPACTION_REPORT, 1.5, compaction=CompactionRecord())
    assert list_kinds(began, reported, ended)[0] is LineKind.HOOK


def test_failure_that_telemetry_explains_is_told_once() -> None:
    explained = line(LineKind.COMPACTION_REPORT, 1.2, name="too_few_groups", compaction=CompactionRecord())
    assert list_kinds(hook("PreCompact", 1), explained, hook("Stop", 2)).count(LineKind.COMPACTION_REPORT) == 1


def test_reasons_go_to_the_nearest_call_of_the_main_conversation() -> None:
    miss = Observation(
        "status:miss", LineKind.STATUS, REPORT, at=at(5.1), client_report=ClientReport("miss", reasons=("why",))
    )
    settled = merge_client_reports([answer(1), answer(5), miss, answer(5.11, is_sidechain=True), answer(9)])
    told = {fact.at: fact.response.client_reasons for fact in settled if fact.response}
    assert {when for when, reasons in told.items() if reasons} == {at(5)}
    far = merge_client_reports([answer(1), miss, answer(9)])
    assert not any(fact.response.client_reasons for fact in far if fact.response)


def test_of_two_statuses_the_later_is_better() -> None:
    early, late = (
        Observation(
            "status:now",
            LineKind.STATUS,
            REPORT,
            at=at(minute),
            client_report=ClientReport("status", context_tokens=tokens),
        )
        for minute, tokens in ((0, 9_000), (1, 5))
    )
    assert choose_more_complete(early, late) is late
    assert choose_more_complete(late, early) is late
