"""What open pages ask for: who is told of which change, in which order, and what the parts of a page say to whom."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from functools import partial

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.hashers import make_password
from django.db import connection, transaction
from django.http import StreamingHttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.access import person
from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.live import room
from dashboard.live.board import MOST_REMEMBERED, Board, News, read_changes, read_counts
from dashboard.live.page_state import note_page_state
from dashboard.live.parts import Parts
from dashboard.live.streams import Streams, spell_event
from dashboard.live.viewers import Viewer, Viewers
from dashboard.live.wanted import MOST_SESSIONS, Wanted, spell_since
from dashboard.models import AgentSession, ChangeCounter, Membership, SessionChange, Team, sessions_changed
from dashboard.retention.deletion import delete_session
from tests.builders import make_many_sessions, make_session, make_team, make_user
from tests.dashboard.ingest.conversation import make_conversation
from tests.session_rows import make_breaks

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def forget() -> None:
    room.forget()


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="olga", member="mia", viewer="vera")


def sign_in(name: str) -> Client:
    client = Client()
    client.force_login(make_user(name), backend="django.contrib.auth.backends.ModelBackend")
    return client


def change(session: AgentSession, **columns: object) -> None:
    AgentSession.objects.filter(pk=session.pk).update(**columns)
    SessionChange.objects.note(session.team_id, [session.pk])


# --- what is written -------------------------------------------------------------------------------------------------


def test_every_recorded_batch_counts_and_what_changes_nothing_does_not(team: Team) -> None:
    talk = make_conversation("one")
    for lines in (talk.lines[:4], talk.lines[:8], talk.lines[:8]):
        take_in(Origin(team, None, "import"), Piece(b"".join(lines), "one", talk.session_id))
    session = AgentSession.objects.get()
    assert ChangeCounter.objects.get(team=team).number == 2
    assert SessionChange.objects.get(session=session).number == 2


def test_change_that_is_rolled_back_is_not_counted(team: Team) -> None:
    session = make_session(team, "one")
    with transaction.atomic():
        SessionChange.objects.note(team.pk, [session.pk])
        transaction.set_rollback(True)
    assert not ChangeCounter.objects.exists()


def test_other_processes_are_told_after_the_commit(
    team: Team, django_capture_on_commit_callbacks: pytest.FixtureRequest
) -> None:
    heard: list[int] = []

    def hear(*, team_pk: int, **_: object) -> None:
        heard.append(team_pk)

    sessions_changed.connect(hear)
    try:
        with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
            SessionChange.objects.note(team.pk, [make_session(team, "one").pk])
            assert heard == []
    finally:
        sessions_changed.disconnect(hear)
    assert heard == [team.pk]


# --- the board -------------------------------------------------------------------------------------------------------


def look(board: Board, *teams: Team) -> None:
    """In the thread of the test, where its transaction is."""
    async_to_sync(board.look)([team.pk for team in teams], at_once=True)


def test_board_tells_sessions_of_the_page_that_changed_since(team: Team) -> None:
    board = Board(pause_seconds=0.3)
    first, second, third = make_many_sessions(team, 3)
    for session in (first, second, third, first):
        change(session)
    look(board, team)
    wanted = Wanted({"harbour": 1}, frozenset({first.pk, second.pk}))
    assert board.find_news(wanted, {"harbour": 1}, [team]) == News({"harbour": 4}, {first.pk: 4, second.pk: 2})
    assert board.find_news(wanted, {"harbour": 4}, [team]) is None
    change(third)
    look(board, team)
    assert board.find_news(wanted, {"harbour": 4}, [team]) is None
    wide = Wanted({"harbour": 4}, is_wide=True)
    assert board.find_news(wide, {"harbour": 4}, [team]) == News({"harbour": 5}, {})


def test_board_says_all_when_more_changed_than_it_remembers(team: Team) -> None:
    board = Board(pause_seconds=0.3)
    sessions = make_many_sessions(team, 2)
    change(sessions[0])
    SessionChange.objects.filter(session=sessions[0]).update(number=1)
    ChangeCounter.objects.filter(team=team).update(number=MOST_REMEMBERED * 3)
    rows = make_many_sessions(make_team("Many"), MOST_REMEMBERED)
    SessionChange.objects.bulk_create(
        SessionChange(session=row, team=team, number=MOST_REMEMBERED + number) for number, row in enumerate(rows)
    )
    look(board, team)
    wanted = Wanted({"harbour": 1}, frozenset({sessions[1].pk}))
    found = board.find_news(wanted, {"harbour": 1}, [team])
    assert found is not None
    assert found.is_all


def test_board_begins_again_with_a_database_that_was_put_back(team: Team) -> None:
    board = Board(pause_seconds=0.3)
    (session,) = make_many_sessions(team, 1)
    for _ in range(5):
        change(session)
    look(board, team)
    ChangeCounter.objects.update(number=2)
    SessionChange.objects.update(number=2)
    look(board, team)
    assert board.find_number(session.pk, [team]) == 2
    found = board.find_news(Wanted({"harbour": 5}), {"harbour": 5}, [team])
    assert found == News({"harbour": 2}, {}, is_all=True)


def test_a_look_costs_one_query_while_nothing_changed_however_many_ask(team: Team) -> None:
    board = Board(pause_seconds=60)
    change(make_session(team, "one"))

    async def ask_often() -> None:
        await asyncio.gather(*(board.look([team.pk]) for _ in range(20)))

    with CaptureQueriesContext(connection) as first:
        async_to_sync(ask_often)()
    assert len(first) == 2
    with CaptureQueriesContext(connection) as second:
        read_changes({team.pk: 1})
    assert len(second) == 1


def test_page_remembers_the_counts_of_its_teams(team: Team) -> None:
    other = make_team("Marina")
    session = make_session(team, "one")
    change(session)
    assert read_counts([team, other]) == {"harbour": 1, "marina": 0}
    state = note_page_state([team, other])
    assert (state.since, state.newest_pk) == ("harbour:1,marina:0", session.pk)
    assert Wanted.read({"since": state.since}).since == {"harbour": 1, "marina": 0}


@pytest.mark.parametrize("text", ["", "harbour", "harbour:", "harbour:-1", ":3", "harbour:1e3", "h\x00:1", "x" * 99])
def test_nonsense_is_not_wanted(text: str) -> None:
    assert Wanted.read({"since": text, "sessions": "one,2.5,-3,²"}) == Wanted({})


def test_a_page_wants_no_more_sessions_than_pages_show() -> None:
    many = ",".join(str(number) for number in range(10_000))
    assert len(Wanted.read({"sessions": many}).sessions) == MOST_SESSIONS
    assert spell_since({"a": 1, "b": 2}) == "a:1,b:2"


def test_part_is_drawn_once_for_all_who_wait_for_it() -> None:
    parts = Parts()
    drawn: list[int] = []

    async def draw() -> str:
        await asyncio.sleep(0)
        drawn.append(1)
        return "part"

    async def ask() -> list[str]:
        return await asyncio.gather(*(parts.find("key", draw) for _ in range(5)))

    assert asyncio.run(ask()) == ["part"] * 5
    assert asyncio.run(parts.find("key", draw)) == "part"
    assert len(drawn) == 1
    assert Parts(kept_seconds=0).get("key") is None


# --- streams ---------------------------------------------------------------------------------------------------------


async def read_until(told: AsyncIterator[bytes], name: str) -> dict[str, object]:
    async with asyncio.timeout(20):
        async for piece in told:
            event, data = piece.decode().strip().split("\n")
            if event == f"event: {name}":
                found: dict[str, object] = json.loads(data.removeprefix("data: "))
                return found
    raise AssertionError(f"the stream ended without {name}")


@pytest.mark.django_db(transaction=True)
def test_stream_tells_changes_of_own_teams_alone_and_ends_with_the_membership() -> None:
    team, other = make_team("Harbour", owner="olga"), make_team("Marina", owner="charlie")
    mine, theirs = make_session(team, "mine"), make_session(other, "theirs")
    client = sign_in("olga")
    streams = Streams(Board(pause_seconds=0.05), Viewers(trusted_seconds=0.2), most=1)
    key = client.cookies["plimsoll_session"].value
    wanted = Wanted({"harbour": 0, "marina": 0}, frozenset({mine.pk, theirs.pk}), is_wide=True)
    viewer = Viewer(make_user("olga"), person(make_user("olga")))

    async def follow() -> None:
        told = streams.tell(key, viewer, wanted)
        await read_until(told, "still")
        assert streams.is_full
        await asyncio.to_thread(in_thread, partial(change_both, theirs, mine))
        news = await read_until(told, "changed")
        assert news == {"teams": {"harbour": 1, "marina": 0}, "sessions": {str(mine.pk): 1}, "all": False}
        await asyncio.to_thread(in_thread, Membership.objects.filter(team=team).delete)
        await read_until(told, "end")
        with pytest.raises(StopAsyncIteration):
            await anext(told)
        assert len(streams) == 0

    asyncio.run(follow())


def change_both(first: AgentSession, second: AgentSession) -> None:
    change(first)
    change(second)


def in_thread(work: Callable[[], object]) -> None:
    try:
        work()
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_streams_end_when_the_process_stops() -> None:
    make_team("Harbour", owner="olga")
    streams = Streams(Board(pause_seconds=0.05), Viewers(), most=5)
    viewer = Viewer(make_user("olga"), person(make_user("olga")))

    async def stop() -> None:
        told = streams.tell("key", viewer, Wanted({"harbour": 0}))
        await read_until(told, "still")
        asyncio.get_running_loop().call_later(0.05, streams.end_all)
        await read_until(told, "end")

    asyncio.run(stop())


def test_event_names_sessions_by_their_keys() -> None:
    assert spell_event(News({"a": 2}, {7: 2})) == (
        b'event: changed\ndata: {"teams":{"a":2},"sessions":{"7":2},"all":false}\n\n'
    )


def test_stream_passes_nginx_and_is_refused_beyond_the_limit(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = sign_in("vera").get("/live/stream?since=harbour:0")
    assert isinstance(answer, StreamingHttpResponse)
    assert (answer["Content-Type"], answer["X-Accel-Buffering"]) == ("text/event-stream", "no")
    assert answer["Cache-Control"] == "no-store"
    monkeypatch.setattr(room.streams, "most", 0)
    refusal = sign_in("vera").get("/live/stream?since=harbour:0")
    assert (refusal.status_code, refusal["Retry-After"]) == (503, "5")


# --- parts of pages --------------------------------------------------------------------------------------------------


def test_asking_tells_what_the_stream_would_have_told(team: Team) -> None:
    session = make_session(team, "one")
    change(session)
    client = sign_in("vera")
    asked = f"/live/changes?since=harbour:0&sessions={session.pk}"
    assert client.get(asked).json() == {"teams": {"harbour": 1}, "sessions": {str(session.pk): 1}, "all": False}
    nothing = {"teams": {"harbour": 1}, "sessions": {}, "all": False}
    assert client.get(f"/live/changes?since=harbour:1&sessions={session.pk}").json() == nothing


def test_asking_tells_an_outsider_nothing(team: Team) -> None:
    session = make_session(team, "one")
    change(session)
    make_team("Marina", owner="charlie")
    told = sign_in("charlie").get(f"/live/changes?since=harbour:0&sessions={session.pk}&wide=yes").json()
    assert told == {"teams": {"harbour": 0}, "sessions": {}, "all": False}


def test_rows_show_titles_to_who_may_read_them_and_nothing_to_outsiders(team: Team) -> None:
    make_team("Marina", owner="charlie")
    session = make_session(team, "external", title="Fix <login>", owner=make_user("mia"))
    asked = f"/live/rows?sessions={session.pk}"
    for name in ("vera", "mia", "vera", "olga"):  # whoever asks first must not decide what the next one sees
        words = sign_in(name).get(asked).content.decode()
        assert f'data-session="{session.pk}"' in words
        assert ("Fix &lt;login&gt;" in words) is (name == "mia")
        assert "<login>" not in words
    assert sign_in("charlie").get(asked).content == b""
    change(session, title="Mended")
    room.viewers.forget()
    look(room.board, team)
    assert "Mended" in sign_in("mia").get(asked).content.decode()


def test_rows_are_drawn_once_for_everybody_who_sees_the_same(team: Team) -> None:
    sessions = make_many_sessions(team, 3)
    asked = "/live/rows?sessions=" + ",".join(str(session.pk) for session in sessions)
    client, again = sign_in("vera"), sign_in("olga")
    client.get(asked)
    again.get("/live/changes")  # is known by now
    with CaptureQueriesContext(connection) as queries:
        assert again.get(asked).content.count(b"<tr") == 3
    assert not [query for query in queries if "agentsession" in query["sql"]]


def test_session_parts_carry_counts_and_title_by_right(team: Team) -> None:
    session = make_session(team, "external", title="Fix login", owner=make_user("mia"), call_count=7, break_count=2)
    for name, sees in (("vera", False), ("mia", True), ("olga", False)):
        answer = sign_in(name).get(f"/live/sessions/{session.pk}?tab=timeline")
        words = answer.content.decode()
        assert ("Fix login" in words) is sees
        assert 'data-count="7"' in words
        assert 'id="session-figures"' in words
    assert sign_in("mia").get(f"/live/sessions/{session.pk}?tab=nothing").status_code == 404


def test_transcript_offers_what_it_would_show_not_lines_that_no_tab_shows(team: Team) -> None:
    session = make_session(team, "one", call_count=7, turn_count=2, compaction_count=1)
    client, asked = sign_in("vera"), f"/live/sessions/{session.pk}?tab=transcript"
    counts = []
    for column in ("entry_count", "problem_count", "call_count", "turn_count"):
        change(session, **{column: 40})
        look(room.board, team)
        counts.append(client.get(asked).content.decode().partition('data-count="')[2].partition('"')[0])
    assert counts == ["10", "10", "43", "81"]


def test_header_drawn_for_an_owner_who_was_found_late_is_for_the_owner_alone(team: Team) -> None:
    session = make_session(team, "external", title="Fix login", owner=None)
    asked = f"/live/sessions/{session.pk}?tab=timeline"
    assert "Fix login" not in sign_in("vera").get(asked).content.decode()
    # Its lines come with a person's key now; this process has not heard of the change yet.
    AgentSession.objects.filter(pk=session.pk).update(owner=make_user("mia"))
    room.parts.forget()
    assert "Fix login" in sign_in("mia").get(asked).content.decode()
    assert "Fix login" not in sign_in("vera").get(asked).content.decode()
    assert "Fix login" in sign_in("mia").get(asked).content.decode()


def test_who_waits_for_a_drawing_of_another_sees_what_they_may(team: Team) -> None:
    session = make_session(team, "external", title="Fix login", owner=None)
    mia, vera = (Viewer(make_user(name), person(make_user(name))) for name in ("mia", "vera"))

    async def ask_together() -> list[str]:
        asked = (room.sight.find_session(viewer, session.pk, "timeline", None) for viewer in (mia, vera))
        return list(await asyncio.gather(*asked))

    async_to_sync(room.sight.find_session)(vera, session.pk, "timeline", None)
    AgentSession.objects.filter(pk=session.pk).update(owner=make_user("mia"))
    room.parts.forget()
    own, others = async_to_sync(ask_together)()
    assert "Fix login" in own
    assert "Fix login" not in others


def test_overview_parts_are_the_team_s(team: Team) -> None:
    make_session(team, "one", last_at=timezone.now())
    words = sign_in("vera").get("/live/overview/harbour").content.decode()
    assert 'id="tiles"' in words
    assert "1 active today" in words


def test_sessions_that_came_are_offered(team: Team) -> None:
    shown = make_session(team, "shown", last_at=timezone.now())
    elsewhere = make_session(team, "elsewhere", project="web")
    drawn_at = int(timezone.now().timestamp()) - 5
    asked = f"/live/offer?newest={elsewhere.pk}&sessions={shown.pk}&drawn_at={drawn_at}"
    client = sign_in("vera")
    assert "Show 1 other active session" in client.get(asked).content.decode()
    AgentSession.objects.filter(pk=elsewhere.pk).update(last_at=timezone.now() - timedelta(hours=1))
    assert client.get(asked).content.strip() == b""
    make_session(team, "new"), make_session(team, "newer", project="web")
    assert "Show 2 new sessions" in client.get(asked).content.decode()
    narrowed = client.get(f"{asked}&project=web").content.decode()
    assert "Show 1 new session" in narrowed
    assert 'href="/sessions/?project=web"' in narrowed
    make_team("Marina", owner="charlie")
    assert b"session" not in sign_in("charlie").get(asked).content  # for whom there never was any
    assert sign_in("charlie").get(f"{asked}&team=harbour").status_code == 404


def test_changed_order_of_a_list_is_noted_beside_its_caption(team: Team) -> None:
    first, second, third = make_many_sessions(team, 3, warm_until=timezone.now(), spent_usd=lambda number: 3 - number)
    client = sign_in("vera")
    shown = f"sessions={first.pk},{second.pk},{third.pk}"
    first_page = f"/live/offer?sort=spend&newest={third.pk}&{shown}"
    assert client.get(first_page).content.strip() == b""
    change(second, last_at=timezone.now(), context_tokens=9)  # by which this list is not sorted
    assert client.get(first_page).content.strip() == b""
    change(second, spent_usd=7)
    note = '<span data-order>Rows updated in place. <a href="/sessions/?sort=spend{}">Sort again</a></span>'
    assert note.format("") in client.get(first_page).content.decode()
    assert note.format("&amp;after=9.9") in client.get(f"{first_page}&after=9.9").content.decode()
    assert b"data-order" not in client.get(f"/live/offer?sort=spend_reversed&sessions={third.pk},{first.pk}").content
    # Sessions without the figure come last.
    change(third, warm_until=None)
    ordered = f"sessions={second.pk},{first.pk},{third.pk}"
    assert client.get(f"/live/offer?sort=warm&{ordered}&newest={third.pk}").content.strip() == b""
    assert b"data-order" in client.get(f"/live/offer?sort=warm&sessions={third.pk},{first.pk}").content


def test_later_pages_and_searches_are_offered_no_new_sessions(team: Team) -> None:
    shown = make_session(team, "shown", last_at=timezone.now())
    client = sign_in("vera")
    make_session(team, "new", last_at=timezone.now())
    asked = f"/live/offer?newest={shown.pk}&sessions={shown.pk},{shown.pk + 100}"
    assert "Show 1 new session" in client.get(asked).content.decode()
    for place in ("after=9.9", "before=9.9", "text=shown"):
        answer = client.get(f"{asked}&{place}").content.decode()
        assert answer.strip() == f'<span data-gone="{shown.pk + 100}" hidden></span>'


def test_overview_is_not_asked_to_be_sorted_again(team: Team) -> None:
    first, second = make_many_sessions(team, 2)
    asked = f"/live/offer?page=overview&newest={second.pk}&sessions={second.pk},{first.pk}"
    assert b"data-order" not in sign_in("vera").get(asked).content


def test_many_new_sessions_are_not_counted_to_the_end(team: Team) -> None:
    asked = f"/live/offer?newest={make_session(team, 'shown').pk}&sort=spend"
    client = sign_in("vera")
    make_many_sessions(team, 100)
    assert ">Show 100 new sessions" in client.get(asked).content.decode()
    make_session(team, "one more")
    assert ">Show more than 100 new sessions" in client.get(asked).content.decode()


def test_deleted_session_leaves_the_pages_that_show_it(team: Team) -> None:
    gone, left = make_session(team, "gone"), make_session(team, "left")
    client = sign_in("vera")
    asked = f"/live/offer?newest={left.pk}&sessions={gone.pk},{left.pk}&drawn_at={int(time.time()) + 60}"
    assert "data-gone" not in client.get(asked).content.decode()
    delete_session(gone, by=make_user("olga"), now=timezone.now())
    told = client.get(f"/live/changes?since=harbour:0&sessions={gone.pk},{left.pk}&wide=yes").json()
    assert told["teams"] == {"harbour": 1}
    assert f'data-gone="{gone.pk}"' in client.get(asked).content.decode()


def test_ledger_offers_breaks_that_came(team: Team) -> None:
    session = make_session(team, "one", project="web")
    make_breaks(session, 2, at=timezone.now())
    client = sign_in("vera")
    page = client.get("/breaks/?project=web").content.decode()
    newest = page.partition('data-newest="')[2].partition('"')[0]
    asked = f"/live/breaks/harbour?project=web&newest={newest}"
    assert asked.partition("&newest")[0] in page
    assert client.get(asked).content.strip() == b""
    make_breaks(make_session(team, "two", project="api"), 4, at=timezone.now())
    assert client.get(asked).content.strip() == b""
    make_breaks(make_session(team, "three", project="web"), 3, at=timezone.now())
    told = client.get(asked).content.decode()
    assert '<a href="/breaks/?project=web">Show 3 new cache breaks</a>' in told
    make_team("Marina", owner="charlie")
    assert sign_in("charlie").get(asked).status_code == 404


def test_pages_say_what_they_were_drawn_with(team: Team) -> None:
    session = make_session(team, "one", last_at=timezone.now())
    change(session)
    client = sign_in("vera")
    for path in ("/", "/sessions/", f"/sessions/{session.pk}/"):
        assert b'data-since="harbour:1"' in client.get(path).content, path


def test_signed_out_person_is_sent_to_sign_in(team: Team) -> None:
    client = sign_in("vera")
    user = make_user("vera")
    assert client.get("/live/changes").status_code == 200
    user.password = make_password("another-password")
    user.save()
    room.viewers.forget()
    assert client.get("/live/changes").status_code == 302
