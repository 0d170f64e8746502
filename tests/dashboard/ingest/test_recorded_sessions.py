"""Everything recorded beside the checkout, taken in and held against a count made with nothing but `json`."""

import json
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import call_command

from bench.threads import read_session_calls
from compaction.cache.breaks import CacheOutcome, judge_thread
from compaction.transcripts.transcript import read_transcript
from dashboard.ingest.intake import Origin
from dashboard.ingest.uploads import Upload, take_in_upload
from dashboard.models import AgentSession, ApiCall, CacheBreak, EntrySegment, ObservedCompaction, TeamPolicy, Thread
from tests.builders import make_team
from tests.dashboard.ingest.database_state import read_state
from tests.dashboard.ingest.independent_count import CountedCall, count_folder
from tests.plugin import RECORDED_DATA

pytestmark = [pytest.mark.django_db, pytest.mark.recorded_data]

TOKENS = ("input_tokens", "read_tokens", "write_5m_tokens", "write_1h_tokens", "output_tokens")


@pytest.fixture
def origin() -> Origin:
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    return Origin(team, None, "import")


def _take_in_all(origin: Origin) -> None:
    for path in sorted(RECORDED_DATA.rglob("*.jsonl")):
        take_in_upload(origin, Upload(str(path.relative_to(RECORDED_DATA)), path.read_bytes()))


def test_totals_equal_an_independent_count_and_a_second_time_changes_nothing(origin: Origin) -> None:
    _take_in_all(origin)
    counted = count_folder(RECORDED_DATA)
    assert set(AgentSession.objects.values_list("external_id", flat=True)) == set(counted)
    for session in AgentSession.objects.all():
        truth = counted[session.external_id]
        assert session.call_count == len(truth.calls)
        assert {name: getattr(session, name) for name in TOKENS} == {name: truth.total(name) for name in TOKENS}
        assert session.compaction_count == len(truth.compactions)
        assert session.problem_count == len(truth.malformed_lines)
        agents = set(Thread.objects.filter(session=session).exclude(agent_id="").values_list("agent_id", flat=True))
        assert truth.agents <= agents
    before = read_state()
    _take_in_all(origin)
    assert read_state() == before


def test_import_of_the_folder_gives_the_same_count_and_its_dollars(
    origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command itself. Dollars are those of each call's tokens at the list price of its model."""
    monkeypatch.setattr("dashboard.management.import_run.count_processes", lambda _: 0)
    out = StringIO()
    call_command("import", str(RECORDED_DATA), team=origin.team.slug, json=True, stdout=out)
    told = json.loads(out.getvalue())
    counted = count_folder(RECORDED_DATA)
    calls = {call_id: call for session in counted.values() for call_id, call in session.calls.items()}
    assert (told["sessions_new"], told["calls_new"]) == (len(counted), len(calls))
    assert told["malformed_lines"] == sum(len(session.malformed_lines) for session in counted.values())
    assert told["spent_usd"] == pytest.approx(float(sum(map(_price, calls.values()))), abs=1e-6)
    for session in AgentSession.objects.all():
        truth = counted[session.external_id]
        assert {name: getattr(session, name) for name in TOKENS} == {name: truth.total(name) for name in TOKENS}
        assert session.spent_usd == sum(map(_price, truth.calls.values()))
    state = read_state()
    call_command("import", str(RECORDED_DATA), team=origin.team.slug, reread=True, quiet=True)
    assert read_state() == state


# Dollars for a million tokens, as the vendor's list has them: input, read, written for five minutes and for an hour,
# output. A model that is not on it has no price.
OPUS, SONNET, HAIKU = ("5", "0.5", "6.25", "10", "25"), ("3", "0.3", "3.75", "6", "15"), ("1", "0.1", "1.25", "2", "5")
PRICES = {
    "claude-opus-4-5-20251101": OPUS,
    "claude-opus-4-6": OPUS,
    "claude-opus-4-7": OPUS,
    "claude-opus-5-5": ("4", "0.2", "5", "8", "20"),
    "claude-sonnet-4-20250514": SONNET,
    "claude-sonnet-4-5-20250929": SONNET,
    "claude-haiku-4-5-20251001": HAIKU,
    "claude-haiku-4-5": HAIKU,
}


def _price(call: CountedCall) -> Decimal:
    each = zip(TOKENS, PRICES.get(call.model, ("0",) * len(TOKENS)), strict=True)
    return sum((Decimal(getattr(call, name)) * Decimal(price) / 1_000_000 for name, price in each), Decimal(0))


def test_breaks_equal_those_of_each_file_read_alone(origin: Origin) -> None:
    """Order and threads are the database's own; the verdicts must be those of the file as it stands."""
    _take_in_all(origin)
    expected = set()
    for path in RECORDED_DATA.rglob("*.jsonl"):
        for calls in read_session_calls(read_transcript(path.read_bytes()).entries).values():
            verdicts = judge_thread(calls)
            expected |= {verdict.call_id for verdict in verdicts if verdict.outcome is CacheOutcome.BREAK}
    assert set(CacheBreak.objects.filter(kind="break").values_list("call_id", flat=True)) == expected
    compactions = {uuid for session in count_folder(RECORDED_DATA).values() for uuid in session.compactions}
    assert set(ObservedCompaction.objects.filter(kind="full").values_list("entry_uuid", flat=True)) == compactions


def test_stored_bytes_stay_below_a_third(origin: Origin) -> None:
    _take_in_all(origin)
    raw = sum(path.stat().st_size for path in RECORDED_DATA.rglob("*.jsonl"))
    stored = sum(len(segment.facts) + len(segment.content or b"") for segment in EntrySegment.objects.all())
    assert stored < raw * 0.3
    assert ApiCall.objects.filter(is_counted=True).count() == ApiCall.objects.count()
