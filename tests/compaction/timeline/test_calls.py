"""Lines of a transcript and reports by other telemetry become the same calls, whichever of them there are."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from compaction.cache.breaks import CacheOutcome, judge_thread
from compaction.cache.causes import Grade
from compaction.timeline.calls import Call, collect_calls
from compaction.timeline.observations import LineKind, Observation, Response
from compaction.timeline.order import order_observations
from compaction.transcripts.entries import Usage

START = datetime(2026, 5, 1, 10, tzinfo=UTC)
MODEL = "claude-opus-4-5"


def usage(read: int = 0, written: int = 0, output: int = 50, *, long: int = 0) -> Usage:
    return Usage(
        input_tokens=3,
        cache_read_tokens=read,
        cache_creation_tokens=written,
        cache_creation_1h_tokens=long,
        output_tokens=output,
    )


def line(name: str, minute: float, used: Usage, **answer: object) -> Observation:
    told = Response(f"msg_{name}", used, MODEL, "end_turn", request_id=f"req_{name}", **answer)  # type: ignore[arg-type]
    at = START + timedelta(minutes=minute)
    return Observation(id=f"line-{name}", kind=LineKind.RESPONSE, type="assistant", at=at, response=told)


def report(name: str, minute: float, used: Usage, *, source: str = "otlp", **answer: object) -> Observation:
    call_id = f"msg_{name}" if source == "proxy" else f"req_{name}"
    told = Response(call_id, used, MODEL, request_id=f"req_{name}", source=source, **answer)  # type: ignore[arg-type]
    at = START + timedelta(minutes=minute)
    return Observation(id=f"{source}-{name}", kind=LineKind.RESPONSE, type=source, at=at, response=told)


def collect(*facts: Observation) -> tuple[Call, ...]:
    return collect_calls(order_observations(facts))


def test_line_and_reports_of_one_request_are_one_call_in_every_order_of_arrival() -> None:
    facts = [
        line("one", 0, usage(written=9_000, output=7)),
        report("one", 0.1, usage(written=9_000, output=80), duration_seconds=2.5),
        report("one", 0.1, usage(written=9_000, output=81), source="proxy", ttft_seconds=0.4),
    ]
    for seed in range(6):
        shuffled = random.Random(seed).sample(facts, 3)
        (call,) = collect(*shuffled)
        assert (call.call_id, call.usage.output_tokens) == ("msg_one", 81)
        assert (call.duration_seconds, call.ttft_seconds) == (2.5, 0.4)
        assert dict(call.provenance)["usage"] == "proxy"


def test_reports_alone_of_one_request_are_one_call() -> None:
    (call,) = collect(
        report("one", 0, usage(written=9_000)), report("one", 0.1, usage(written=9_000, output=60), source="proxy")
    )
    assert (call.call_id, call.usage.output_tokens) == ("msg_one", 60)


def test_call_that_only_telemetry_knows_stands_at_its_time() -> None:
    calls = collect(
        line("one", 0, usage(written=9_000)), report("two", 1, usage(read=9_000)), line("three", 2, usage(read=9_000))
    )
    assert [call.call_id for call in calls] == ["msg_one", "req_two", "msg_three"]


@pytest.mark.parametrize("source", ["compact", "generate_session_title", "prompt_suggestion"])
def test_call_beside_the_conversation_is_kept_and_neither_judged_nor_compared_with(source: str) -> None:
    calls = collect(
        report("one", 0, usage(written=90_000), query_source="repl_main_thread"),
        report("aside", 1, usage(written=2_500), query_source=source),
        report("two", 2, usage(read=90_000), query_source="repl_main_thread"),
    )
    assert [call.is_beside for call in calls] == [False, True, False]
    verdicts = judge_thread(calls)
    assert [verdict.outcome for verdict in verdicts] == [
        CacheOutcome.EXPECTED,
        CacheOutcome.NOTHING,
        CacheOutcome.NOTHING,
    ]


def test_what_the_api_told_the_proxy_explains_the_loss_of_a_call_known_by_its_lines() -> None:
    calls = collect(
        line("one", 0, usage(written=90_000)),
        line("two", 1, usage(written=90_000)),
        report("two", 1, usage(written=90_000), source="proxy", miss_reason="tools_changed"),
    )
    verdict = judge_thread(calls)[1]
    assert verdict.primary is not None
    assert verdict.primary.grade is Grade.API


def test_what_the_client_says_about_a_miss_is_heard() -> None:
    calls = collect(
        line("one", 0, usage(written=90_000)),
        line("two", 1, usage(written=90_000), client_reasons=("effort_changed",)),
    )
    verdict = judge_thread(calls)[1]
    assert verdict.primary is not None
    assert verdict.primary.grade is Grade.CLIENT
