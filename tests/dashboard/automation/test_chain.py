"""The automatic chain end to end, from a call that crosses the line to what the fake API was asked, rung by rung.

Its first rungs, which ask nobody, stand in test_crossings.
"""

import pytest
from pytest_django import Settings

from dashboard.jobs.perform import perform_due
from dashboard.models import AutomaticMode, CompactionRun, LineCrossing, RunKind, RunState, SummarizerName
from dashboard.runs.parent_requests import SWITCHED_OFF
from tests.dashboard.automation.test_crossings import LiveTalk, make_storing_team, wish
from tests.dashboard.runs.sailing import Sailor, make_sailor
from tests.dashboard.runs.scripted import Script, write_summary
from tests.fakes import replies
from tests.fakes.messages_api import MessagesApi
from tests.visitors import read, sign_in

pytestmark = pytest.mark.django_db(transaction=True)

LINE_TOKENS = 27_000  # of a window of 60,000: 20,000 are kept back, 13,000 are the margin
TURN = "The harbour is wide and the chart is long. " * 400  # about 4,300 tokens


@pytest.fixture
def sailor(messages_api: MessagesApi, script: Script, settings: Settings) -> Sailor:
    assert script is not None  # stands for a model elsewhere; here the fake API does
    sailor = make_sailor(messages_api, settings, window_tokens=60_000)
    wish(sailor.team, mode=AutomaticMode.RUN, summarizer=SummarizerName.CLAUDE)
    return sailor


def cross_line(sailor: Sailor) -> None:
    """The job is posted, and waits."""
    while not sailor.client.messages or sailor.session.context_tokens < LINE_TOKENS:
        sailor.say(f"Never touch the lighthouse. {TURN}")


def fall_below(sailor: Sailor) -> None:
    sailor.client.messages = sailor.client.messages[:2]
    sailor.say("Begin again.")


def forbid_forks(sailor: Sailor) -> None:
    sailor.team.summarizer_settings.allows_fork = False
    sailor.team.summarizer_settings.save()


def answer_line(sailor: Sailor) -> CompactionRun:
    perform_due()
    crossing = LineCrossing.objects.filter(session=sailor.session).latest("pk")
    assert crossing.run is not None, crossing.refusal
    run = crossing.run
    assert (run.kind, run.source, run.trigger, crossing.line_tokens) == (RunKind.FULL, "auto", "auto", LINE_TOKENS)
    return run


def test_a_warm_cache_is_forked(sailor: Sailor) -> None:
    cross_line(sailor)
    sailor.api.script(replies.Reply(text=write_summary()))
    run = answer_line(sailor)
    first = run.attempts.order_by("number")[0]
    assert (run.state, first.path, first.failure_code) == (RunState.DONE, "fork", "")
    assert first.hit_percent is not None
    assert first.hit_percent > 50
    assert run.after_tokens is not None
    assert run.after_tokens < LINE_TOKENS


def test_without_a_fork_a_request_of_its_own_is_made(sailor: Sailor) -> None:
    forbid_forks(sailor)
    cross_line(sailor)
    run = answer_line(sailor)
    paths = set(run.attempts.exclude(path="count").values_list("path", flat=True))
    assert (run.state, paths, run.fork_refusal) == (RunState.DONE, {"plain"}, SWITCHED_OFF)


def test_a_range_that_is_too_long_is_shrunk(sailor: Sailor) -> None:
    cross_line(sailor)
    too_long = replies.refuse(400, "invalid_request_error", "prompt is too long: 30000 tokens > 22000 maximum")
    sailor.api.script(too_long, too_long)
    run = answer_line(sailor)
    codes = list(run.attempts.order_by("number").values_list("failure_code", flat=True))
    assert (run.state, codes[:2]) == (RunState.DONE, ["prompt_too_long", "prompt_too_long"])
    assert run.kept_count + run.dropped_count > 0
    sizes = [len(request.raw) for request in sailor.api.messages]
    assert sizes[-1] < max(sizes)


def test_failures_are_told_and_three_in_a_row_pause_the_conversation(sailor: Sailor) -> None:
    forbid_forks(sailor)  # one request each
    for _ in range(3):
        cross_line(sailor)
        sailor.api.script(replies.NO_CREDIT)
        run = answer_line(sailor)
        assert (run.state, run.spent_usd) == (RunState.FAILED, 0)
        told = f"and the automatic run failed: {run.failure_sentence}"
        overview, page = (read(sign_in("alice"), path) for path in ("/", f"/sessions/{sailor.session.pk}/"))
        assert told in overview
        assert told in page
        fall_below(sailor)
    asked = len(sailor.api.messages)
    cross_line(sailor)
    said = len(sailor.api.messages)
    perform_due()
    crossing = LineCrossing.objects.latest("pk")
    assert crossing.run is None
    assert "paused after 3 failures" in crossing.refusal
    assert len(sailor.api.messages) == said > asked  # nobody was asked for a summary
    assert "paused after 3 failures" in read(sign_in("alice"), "/")


def test_two_teams_with_lines_and_modes_of_their_own_at_once() -> None:
    early, late = make_storing_team("Early", AutomaticMode.RUN), make_storing_team("Late", AutomaticMode.SUGGEST)
    early.policies.update(thresholds={"auto_percent": 50})
    talks = {team: LiveTalk(f"of-{team.slug}") for team in (early, late)}

    def read_crossings() -> dict[str, list[tuple[str, int, bool]]]:
        rows = LineCrossing.objects.order_by("pk")
        return {
            team.slug: [(row.answer, row.line_tokens, row.run is not None) for row in rows.filter(team=team)]
            for team in talks
        }

    for team, talk in talks.items():
        talk.grow(80_000).grow(100_000).send(team)
    assert read_crossings() == {"early": [("run", 90_000, True)], "late": []}
    for team, talk in talks.items():
        talk.grow(170_000).send(team)
    assert read_crossings() == {"early": [("run", 90_000, True)], "late": [("suggest", 167_000, False)]}
