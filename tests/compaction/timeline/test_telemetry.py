"""Reports by telemetry and lines of a transcript that tell of the same thing are told as one."""

import random
from datetime import UTC, datetime, timedelta

from compaction.timeline.observations import REPORT, CompactionRecord, LineKind, Observation, Response
from compaction.timeline.order import order_observations
from compaction.timeline.telemetry import merge_telemetry
from compaction.transcripts.entries import Usage

START = datetime(2026, 5, 1, 10, tzinfo=UTC)


def make(fact_id: str, kind: LineKind, second: float, **values: object) -> Observation:
    given: dict[str, object] = {"type": REPORT if ":" in fact_id else "system", **values}
    return Observation(id=fact_id, kind=kind, at=START + timedelta(seconds=second), **given)  # type: ignore[arg-type]


def boundary(second: float, **told: object) -> Observation:
    compacted = CompactionRecord(trigger="auto", before_tokens=167_000, **told)  # type: ignore[arg-type]
    return make(f"boundary-{second:g}", LineKind.BOUNDARY, second, compaction=compacted)


def report(second: float, *, source: str = "otlp", name: str | None = None, **values: object) -> Observation:
    compacted = CompactionRecord(trigger="auto", before_tokens=160_000, after_tokens=9_000, duration_seconds=8.0)
    given: dict[str, object] = {"compaction": compacted, **values}
    return make(f"{source}:compaction:{second:g}", LineKind.COMPACTION_REPORT, second, name=name, **given)


def settle(*facts: Observation) -> list[Observation]:
    return list(merge_telemetry(order_observations(facts)))


def test_facts_without_reports_are_left_as_they_are() -> None:
    facts = order_observations([boundary(0), boundary(5)])
    assert merge_telemetry(facts) is facts


def test_report_fills_what_the_boundary_near_it_does_not_say() -> None:
    (fact,) = settle(boundary(100), report(103))
    assert fact.id == "boundary-100"
    assert fact.compaction == CompactionRecord(
        trigger="auto", before_tokens=167_000, after_tokens=9_000, duration_seconds=8.0
    )


def test_each_report_goes_to_its_own_compaction_in_any_order() -> None:
    facts = [boundary(0), boundary(90), report(2), report(91), report(1, source="hook"), report(95, source="hook")]
    for seed in range(5):
        assert [fact.id for fact in settle(*random.Random(seed).sample(facts, 6))] == ["boundary-0", "boundary-90"]


def test_reports_alone_become_boundaries_one_for_each_compaction() -> None:
    settled = settle(report(0), report(2, source="hook"), report(30), report(500, source="hook"))
    assert [(fact.id, fact.kind) for fact in settled] == [
        ("otlp:compaction:0", LineKind.BOUNDARY),
        ("otlp:compaction:30", LineKind.BOUNDARY),
        ("hook:compaction:500", LineKind.BOUNDARY),
    ]


def test_report_of_another_thread_trigger_or_time_is_another_compaction() -> None:
    manual = CompactionRecord(trigger="manual")
    facts = [boundary(0), report(1, is_sidechain=True, agent_id="a1"), report(2, compaction=manual), report(999)]
    assert len(settle(*facts)) == 4


def test_failed_compaction_stays_a_report() -> None:
    settled = settle(boundary(0), report(1, name="too_few_groups"))
    assert [fact.kind for fact in settled] == [LineKind.BOUNDARY, LineKind.COMPACTION_REPORT]


def test_reported_prompts_count_where_no_line_tells_prompts() -> None:
    told = make("otlp:prompt:1", LineKind.PROMPT_REPORT, 1)
    assert [fact.kind for fact in settle(told)] == [LineKind.PROMPT]
    assert [fact.id for fact in settle(told, make("line", LineKind.PROMPT, 900))] == ["line"]


def test_report_stands_in_the_thread_of_its_call() -> None:
    used = Usage(input_tokens=3, output_tokens=9)
    line = make(
        "line",
        LineKind.RESPONSE,
        5,
        is_sidechain=True,
        agent_id="a1",
        response=Response("msg_1", used, request_id="req_1"),
    )
    by_request = make(
        "otlp:span:1", LineKind.RESPONSE, 4, response=Response("req_1", used, request_id="req_1", source="otlp")
    )
    by_message = make("otlp:span:2", LineKind.RESPONSE, 4, response=Response("msg_1", used, source="otlp"))
    assert {fact.agent_id for fact in settle(line, by_request, by_message)} == {"a1"}


def test_nameless_reports_with_the_same_figures_are_as_many_calls_as_one_teller_tells() -> None:
    used = Usage(input_tokens=3, cache_read_tokens=700, output_tokens=9)

    def tell(kind: str, second: float) -> Observation:
        answer = Response(f"otlp-{kind}-{second:g}", used, source="otlp")
        return make(f"otlp:{kind}:{second:g}", LineKind.RESPONSE, second, response=answer)

    settled = settle(tell("call", 0), tell("call", 60), tell("span", 0.1), tell("span", 60.1))
    assert [fact.response.call_id for fact in settled if fact.response] == [
        "otlp-call-0", "otlp-call-0", "otlp-call-60", "otlp-call-60",
    ]  # fmt: skip
