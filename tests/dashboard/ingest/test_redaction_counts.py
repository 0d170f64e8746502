"""Counts by rule say how many marks stored text holds, whatever way it came, however often, and when it goes again."""

import json
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import Sum
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.access import person
from dashboard.automation.note_versions import edit_notes, keep_version
from dashboard.ingest.client_hooks import prepare_hooks
from dashboard.ingest.intake import Origin, make_rules, project_again, store, store_together, take_in
from dashboard.ingest.observed import Piece
from dashboard.ingest.pushed_lines import make_push, settle_push
from dashboard.ingest.redaction import MARKS
from dashboard.ingest.segments import SEGMENT_BYTES, expand
from dashboard.ingest.transcripts import prepare
from dashboard.models import AgentSession, EntrySegment, PromptShape, RedactionCount, SessionNote, Team, TeamPolicy
from dashboard.policies.in_force import find_policy
from dashboard.retention.deletion import delete_session
from dashboard.retention.forgetting import forget_session, forget_shapes
from tests.builders import make_team, make_user
from tests.dashboard.ingest.conversation import START, Conversation

pytestmark = pytest.mark.django_db
TOKEN, STRIPE = "ghp_" + "Zq9" * 12, "sk_live_" + "4eC39HqLyjWDarjt"


@pytest.fixture
def team() -> Team:
    team = make_team("Harbour", owner="olga")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True, own_patterns={"badge": "B-[0-9]{6}"})
    return team


@pytest.fixture
def origin(team: Team) -> Origin:
    return Origin(team, None, "follow")


def make_talk(name: str = "harbour", *, size: int = 3) -> Conversation:
    talk = Conversation(name)
    for number in range(size):
        talk.ask(f"Use {TOKEN} for {number}.")
        talk.answer(f"{name}-{number}", written=100)
        talk.result(f"{TOKEN}, {STRIPE} and B-123456.")
    talk.ask("What does [redacted:jwt] mean?")  # a mark that came along, and replaced nothing here
    return talk


def counts() -> dict[str, int]:
    rows = RedactionCount.objects.values("rule").annotate(total=Sum("count")).order_by()
    return {row["rule"]: row["total"] for row in rows}


def count_in_text() -> dict[str, int]:
    """Independent of what is counted: the marks of all stored lines."""
    found: Counter[str] = Counter()
    for content in EntrySegment.objects.exclude(content=None).values_list("content", flat=True):
        assert content is not None
        found.update(mark[10:-1].decode() for mark in MARKS.findall(expand(content)))
    found.pop("jwt", None)
    return dict(found)


def test_the_same_file_twice_counts_once_and_what_is_added_is_added(origin: Origin) -> None:
    talk = make_talk()
    for _ in range(2):
        take_in(origin, Piece(talk.data, "talk", talk.session_id))
        assert counts() == {"github-token": 6, "stripe-key": 3, "badge": 3} == count_in_text()
    talk.ask(f"And {TOKEN}.")
    take_in(origin, Piece(talk.data, "talk", talk.session_id))
    assert counts() == {"github-token": 7, "stripe-key": 3, "badge": 3} == count_in_text()


def test_lines_one_by_one_and_in_any_order_count_as_the_whole_file(origin: Origin) -> None:
    talk = make_talk()
    for line in [*talk.lines[::2], *talk.lines[::-1]]:
        take_in(origin, Piece(line, "talk", talk.session_id))
    assert counts() == {"github-token": 6, "stripe-key": 3, "badge": 3} == count_in_text()


def test_a_session_of_many_segments_is_counted_in_each_of_them(origin: Origin) -> None:
    talk = make_talk(size=2)
    for number in range(3):
        talk.ask("x" * SEGMENT_BYTES)
        talk.wait(86_400).ask(f"Use {TOKEN} for {number}.")
    take_in(origin, Piece(talk.data, "talk", talk.session_id))
    assert EntrySegment.objects.count() > 2
    assert counts() == {"github-token": 7, "stripe-key": 2, "badge": 2} == count_in_text()
    days = RedactionCount.objects.filter(rule="github-token").order_by("day").values_list("day", flat=True)
    assert sorted(set(days)) == [(START + timedelta(days=n)).date() for n in range(4)]


def test_every_way_in_is_counted(team: Team, origin: Origin) -> None:
    policy = find_policy(team)
    rules = make_rules(team, policy)
    one, two, three = (make_talk(name, size=1) for name in ("one", "two", "three"))
    pushed = make_push(prepare(Piece(one.data, "talk", one.session_id), rules))
    store_together(origin, settle_push(pushed, rules), policy)
    assert counts() == {"github-token": 2, "stripe-key": 1, "badge": 1}
    upload = Piece(two.data + three.data, "upload")
    store_together(Origin(team, make_user("olga"), "upload"), prepare(upload, rules), policy)
    assert counts() == {"github-token": 6, "stripe-key": 3, "badge": 3} == count_in_text()
    hook = {"hook_event_name": "PostCompact", "session_id": "h1", "compact_summary": f"With {TOKEN}."}
    store(Origin(team, None, "hooks"), prepare_hooks(json.dumps(hook).encode(), rules, arrived_at=START), policy)
    assert counts()["github-token"] == 7 == count_in_text()["github-token"]


def test_a_system_prompt_counts_once_however_often_it_was_sent(origin: Origin) -> None:
    talk = Conversation()
    talk.ask("Draw the chart.")
    for _ in range(3):
        talk.note("api-request-shape", shapeHash="h1", shape={"system": [f"The key is {STRIPE}."], "tools": []})
    take_in(origin, Piece(talk.data, "talk", talk.session_id))
    take_in(origin, Piece(talk.data, "talk", talk.session_id))
    assert PromptShape.objects.get().is_redacted
    assert counts() == {"stripe-key": 1}
    RedactionCount.objects.filter(shape=None).delete()
    forget_shapes(origin.team, timezone.now() + timedelta(days=1))
    PromptShape.objects.update(seen_at=START)
    AgentSession.objects.update(last_at=START)
    forget_shapes(origin.team, timezone.now())
    assert counts() == {}


def test_what_is_deleted_or_forgotten_leaves_the_count(origin: Origin) -> None:
    for name in ("one", "two"):
        talk = make_talk(name)
        take_in(origin, Piece(talk.data, name, talk.session_id))
    assert counts()["github-token"] == 12
    one, two = AgentSession.objects.order_by("pk")
    delete_session(one, by=None, now=timezone.now())
    assert counts() == {"github-token": 6, "stripe-key": 3, "badge": 3} == count_in_text()
    since = START + timedelta(seconds=3)  # lines come a second apart
    forget_session(two, since, now=timezone.now())
    assert counts() == count_in_text()
    assert 0 < counts()["github-token"] < 6
    forget_session(two, timezone.now() + timedelta(days=1), now=timezone.now())
    assert counts() == {}


def test_notes_count_what_was_taken_out_of_them(team: Team, origin: Origin) -> None:
    talk = make_talk(size=1)
    take_in(Origin(team, make_user("olga"), "upload"), Piece(talk.data, "talk", talk.session_id))
    session = AgentSession.objects.get()
    before = counts()["github-token"]
    first = SessionNote(team=team, session=session, number=1, text="# A\n[redacted:github-token]", writer="extractive")
    keep_version(first, {})
    edit_notes(person(make_user("olga")), session, f"# A\nnow {TOKEN}", base_number=1, now=timezone.now())
    assert counts()["github-token"] == before + 1
    SessionNote.objects.all().delete()
    assert counts()["github-token"] == before


def test_sessions_of_an_earlier_version_are_counted_with_their_projection(origin: Origin) -> None:
    talk = make_talk()
    take_in(origin, Piece(talk.data, "talk", talk.session_id))
    expected = counts()
    RedactionCount.objects.all().delete()
    AgentSession.objects.update(projection_version=1)
    project_again(AgentSession.objects.select_related("team", "owner").get())
    assert counts() == expected
    AgentSession.objects.update(projection_version=1)
    project_again(AgentSession.objects.select_related("team", "owner").get())
    assert counts() == expected


def test_a_session_of_an_earlier_version_that_goes_on_is_counted_whole(origin: Origin) -> None:
    talk = make_talk()
    for number in range(2):
        talk.ask("x" * SEGMENT_BYTES + str(number))
    take_in(origin, Piece(talk.data, "talk", talk.session_id))
    RedactionCount.objects.all().delete()
    AgentSession.objects.update(projection_version=2)
    talk.ask(f"And {TOKEN}.")
    take_in(origin, Piece(talk.lines[-1], "talk", talk.session_id))
    assert counts() == {"github-token": 7, "stripe-key": 3, "badge": 3} == count_in_text()


def test_counting_costs_no_query_for_each_mark(origin: Origin) -> None:
    taken = []
    for name, size in (("few", 1), ("many", 200)):
        talk = make_talk(name, size=size)
        piece = Piece(talk.data, name, talk.session_id)
        with CaptureQueriesContext(connection) as queries:
            take_in(origin, piece)
        taken.append(sum("redactioncount" in query["sql"].lower() for query in queries))
    assert taken == [1, 1]


def test_made_up_marks_do_not_make_many_rows(origin: Origin) -> None:
    talk = Conversation()
    made_up = " ".join(f"[redacted:made-{number}]" for number in range(5_000))
    talk.ask(f"{made_up} {TOKEN}")
    take_in(origin, Piece(talk.data, "talk", talk.session_id))
    assert RedactionCount.objects.count() <= 200
