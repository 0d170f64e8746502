"""Starting a run: who may, what is refused and with which words, one open run per thread, the cap under a rush."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connections
from django.utils import timezone

from dashboard.models import AgentSession, CompactionRun, DaySpend, Job, RunKind, SummarizerName, Team
from dashboard.runs.choices import RunChoices, RunRefused
from dashboard.runs.preview import preview_run
from dashboard.runs.settings_changes import SettingsChange, change_settings
from dashboard.runs.start import cancel_run, start_run
from tests.builders import make_session
from tests.dashboard.ingest.planted_secrets import PLANTED
from tests.dashboard.runs.scripted import Script
from tests.dashboard.runs.world import give_key, make_harbour, person, record_session, run_now, write_talk
from tests.recorded_talk import RecordedTalk

pytestmark = pytest.mark.django_db(transaction=True)
CLAUDE = RunChoices(summarizer=SummarizerName.CLAUDE)


@pytest.fixture
def team() -> Team:
    return make_harbour()


@pytest.fixture
def session(team: Team) -> AgentSession:
    return record_session(team)


def start(session: AgentSession, choices: RunChoices | None = None, *, by: str = "alice") -> CompactionRun:
    return start_run(person(by), session, choices or RunChoices(), source="api", now=timezone.now())


def refuse(session: AgentSession, choices: RunChoices) -> RunRefused:
    with pytest.raises(RunRefused) as refused:
        start(session, choices)
    assert not CompactionRun.objects.exists()
    assert not Job.objects.filter(kind="compact").exists()
    assert not DaySpend.objects.filter(reserved_usd__gt=0).exists()
    return refused.value


def test_members_run_their_own_sessions_and_admins_all(team: Team) -> None:
    own = record_session(team, write_talk("own"), owner="mia")
    others = record_session(team, write_talk("others"), owner="alice")
    assert start(own, by="mia").started_by_name == "mia"
    assert start(others, by="anna").started_by_name == "anna"
    for name in ("mia", "vera", "charlie"):
        with pytest.raises(PermissionDenied):
            start(others, by=name)
    with pytest.raises(PermissionDenied):
        cancel_run(person("vera"), CompactionRun.objects.all()[0], now=timezone.now())


def test_second_run_of_a_thread_is_told_of_the_first(session: AgentSession) -> None:
    first = start(session)
    with pytest.raises(RunRefused) as refused:
        start(session, by="anna")
    assert refused.value.code == "run_open"
    assert refused.value.figures == {"run_id": first.pk}
    assert "started by alice" in refused.value.sentence


def test_ten_people_pressing_at_once_make_one_run(session: AgentSession) -> None:
    actor = person("alice")

    def press(_number: int) -> str:
        try:
            start_run(actor, session, RunChoices(), source="page", now=timezone.now())
        except RunRefused as refusal:
            return refusal.code
        finally:
            connections.close_all()
        return "started"

    with ThreadPoolExecutor(10) as pool:
        told = sorted(pool.map(press, range(10)))
    assert told == ["run_open"] * 9 + ["started"]
    assert CompactionRun.objects.count() == Job.objects.filter(kind="compact").count() == 1


def test_twenty_starts_at_once_stay_under_the_cap(team: Team) -> None:
    sessions = [record_session(team, write_talk(f"talk-{number}")) for number in range(20)]
    most = preview_run_most(team, sessions[0])
    give_key(team, daily_cap_usd=most * 7 + most / 2)
    actor = person("alice")

    def press(session: AgentSession) -> str:
        try:
            start_run(actor, session, CLAUDE, source="page", now=timezone.now())
        except RunRefused as refusal:
            return refusal.code
        finally:
            connections.close_all()
        return "started"

    with ThreadPoolExecutor(20) as pool:
        told = sorted(pool.map(press, sessions))
    assert told == ["cap_reached"] * 13 + ["started"] * 7
    day = DaySpend.objects.get()
    assert day.reserved_usd == sum(run.reserved_usd for run in CompactionRun.objects.all())
    assert day.reserved_usd <= most * 7 + most / 2


def preview_run_most(team: Team, session: AgentSession) -> Decimal:
    settings = give_key(team)
    most = preview_run(session, CLAUDE, now=timezone.now()).reserved_usd
    settings.delete()
    assert most > 0
    return most


def test_without_stored_content_there_is_nothing_to_compact(team: Team) -> None:
    refused = refuse(make_session(team, "numbers only"), RunChoices())
    assert refused.code == "no_content"
    assert "not stored" in refused.sentence


def test_without_a_key_no_model_is_asked(session: AgentSession) -> None:
    assert refuse(session, CLAUDE).code == "no_key"


@pytest.mark.parametrize(
    ("model", "code"),
    [("gpt-9", "model_not_allowed"), ("../../v1", "model_not_allowed"), ("claude-opus-9-9", "price_unknown")],
)
def test_model_without_a_known_price_is_refused(team: Team, session: AgentSession, model: str, code: str) -> None:
    give_key(team)
    refused = refuse(session, RunChoices(summarizer=SummarizerName.CLAUDE, model=model))
    assert refused.code == code
    assert refused.figures["model"] == model


def test_price_of_the_team_opens_a_model(team: Team, session: AgentSession) -> None:
    give_key(team)
    change_settings(team, SettingsChange(own_prices={"claude-opus-9-9": ("2", "10", "2.5", "4", "0.2")}), by=None)
    run = start(session, RunChoices(summarizer=SummarizerName.CLAUDE, model="claude-opus-9-9"))
    assert run.reserved_usd > 20_000 * 10 / Decimal(1_000_000)


def test_cap_refuses_with_its_numbers(team: Team, session: AgentSession) -> None:
    give_key(team, daily_cap_usd=Decimal("0.05"))
    refused = refuse(session, CLAUDE)
    assert refused.code == "cap_reached"
    assert set(refused.figures) == {"cap_usd", "spent_usd", "reserved_usd", "wanted_usd"}


@pytest.mark.parametrize(
    ("choices", "code"),
    [
        (RunChoices(kind=RunKind.FROM), "pivot_missing"),
        (RunChoices(kind=RunKind.UP_TO, pivot_uuid="nowhere"), "pivot_not_found"),
        (RunChoices(kind=RunKind.MICRO_SIZE), "nothing_to_compact"),
        (RunChoices(agent_id="nobody"), "thread_unknown"),
        (RunChoices(instructions="x" * 10_001), "instructions_too_long"),
    ],
)
def test_what_cannot_be_done_is_said_before_it_is_tried(session: AgentSession, choices: RunChoices, code: str) -> None:
    refused = refuse(session, choices)
    assert refused.code == code
    assert refused.sentence.endswith(".")


def test_micro_run_that_would_save_nothing_says_what_there_is(session: AgentSession) -> None:
    refused = refuse(session, RunChoices(kind=RunKind.MICRO_SIZE))
    assert "holds 8 tool results that could be cleared, 4,408 tokens in all" in refused.sentence
    assert "nothing would be saved" in refused.sentence


def test_live_session_is_warned_of_and_not_refused(session: AgentSession) -> None:
    AgentSession.objects.filter(pk=session.pk).update(last_at=timezone.now())
    session.refresh_from_db()
    preview = preview_run(session, RunChoices(), now=timezone.now())
    assert "live_session" in [notice.code for notice in preview.warnings]
    assert preview.refusals == ()
    assert start(session).pk


def test_preview_tells_what_is_sent_and_what_it_may_cost(team: Team, session: AgentSession) -> None:
    give_key(team, model="claude-opus-4-5", small_model="claude-haiku-4-5")
    preview = preview_run(session, CLAUDE, now=timezone.now())
    assert (preview.model, preview.path) == ("claude-haiku-4-5", "plain")
    assert "No whole request" in preview.fork_refusal
    assert [cost.model for cost in preview.costs] == ["claude-haiku-4-5", "claude-opus-4-5"]
    small, large = preview.costs
    assert small.miss_usd is not None
    assert small.most_usd is not None
    assert large.most_usd is not None
    assert small.hit_usd is None  # a request of its own has no cache to hit
    assert small.miss_usd < small.most_usd < large.most_usd
    expected = (preview.sent_tokens * 1 + 20_000 * 5) / Decimal(1_000_000)
    assert small.most_usd == preview.reserved_usd == expected
    assert preview.messages_sent > 10
    assert (preview.summarised_count, preview.kept_count) == (24, 0)
    low, high = preview.expected_after_tokens or (0, 0)
    assert 0 < low < high
    assert "Additional Instructions" not in preview.prompt
    assert "nine numbered sections" in preview.prompt


def test_preview_without_a_model_knows_the_result(session: AgentSession) -> None:
    preview = preview_run(session, RunChoices(), now=timezone.now())
    run = run_now(session)
    assert preview.expected_after_tokens == (run.after_tokens, run.after_tokens)
    assert preview.costs == ()
    assert preview.reserved_usd == 0


def test_result_that_is_no_smaller_is_warned_of(session: AgentSession) -> None:
    """A conversation of 2,000 tokens with four restored files."""
    [notice] = preview_run(session, RunChoices(), now=timezone.now()).warnings
    assert (notice.code, notice.figures) == ("no_saving", {"before_tokens": 11_943, "after_tokens": 16_580})


def test_summary_by_a_model_that_may_be_no_smaller_is_warned_of(team: Team) -> None:
    """How long a model's summary is, is not known before."""
    give_key(team)
    session = record_session(team, write_talk("uncertain", turns=4, growth=2_500))
    preview = preview_run(session, CLAUDE, now=timezone.now())
    low, high = preview.expected_after_tokens or (0, 0)
    assert low < preview.before_tokens <= high
    [notice] = preview.warnings
    assert notice.code == "saving_uncertain"
    assert notice.figures == {
        "before_tokens": preview.before_tokens,
        "after_tokens": low,
        "most_after_tokens": high,
    }


def test_secrets_reach_neither_the_summariser_nor_the_run(team: Team, script: Script) -> None:
    give_key(team)
    talk = RecordedTalk("secrets")
    for number, planted in enumerate(PLANTED):
        talk.ask(f"Use this: {planted.text}")
        talk.reply(f"secrets-{number}", read=100, written=100)
    session = record_session(team, talk)
    instructions = "Keep in mind: " + PLANTED[0].text
    run = run_now(session, RunChoices(summarizer=SummarizerName.CLAUDE, instructions=instructions))
    assert run.state == "done", run.failure_sentence
    told = str(script.requests[0].body) + script.requests[0].prompt + run.instructions
    assert [planted.form for planted in PLANTED if planted.secret in told] == []
