"""What fills a context: parts, files, duplicates, results and what could be cleared, for each who may look."""

import re
from datetime import timedelta

import pytest

from dashboard import access
from dashboard.models import AgentSession, ApiCall, Team
from dashboard.pages.context_page import MicroPreview, read_context
from dashboard.words import say_tokens
from tests.builders import make_session, make_user
from tests.recorded_talk import RecordedTalk, make_harbour, record_talk, write_recorded_talk
from tests.visitors import ask, count_queries, read, sign_in

pytestmark = pytest.mark.django_db
PATH = "/home/ann/chart.py"


@pytest.fixture
def team() -> Team:
    return make_harbour()


def write_reading_talk(name: str = "reading", *, reads: int = 3, lines: int = 1) -> RecordedTalk:
    """A session that reads one file again and again."""
    talk = RecordedTalk(name)
    talk.ask("Draw.")
    for number in range(reads):
        talk.read_file(f"toolu_{number}", PATH, at_call=f"{name}-{number}", read=1000 * number, written=12_000)
        use = {"type": "tool_use", "id": f"bash_{number}", "name": "Bash", "input": {"command": "ls"}}
        talk.reply(f"{name}-bash-{number}", use, read=1000, written=1000)
        block = {"type": "tool_result", "tool_use_id": f"bash_{number}", "content": "x" * 40_000 * lines}
        talk.write("user", message={"role": "user", "content": [block]})
    return talk


def test_parts_files_duplicates_and_results_are_told(team: Team) -> None:
    session = record_talk(team, make_user("alice"), write_reading_talk())
    inside = ask(sign_in("alice"), f"sessions/{session.pk}/context")["inside"]
    parts = {(part["category"], part["name"]): part for part in inside["parts"]}
    assert parts["tool results", "Read"]["count"] == 3
    assert parts["tool results", "Bash"]["tokens"] > 30_000
    assert inside["estimated_tokens"] == sum(part["tokens"] for part in inside["parts"])
    assert [file["name"] for file in inside["files"]] == [PATH]
    assert [(each["path"], each["read_count"]) for each in inside["duplicates"]] == [(PATH, 3)]
    assert inside["wasted_tokens"] == inside["duplicates"][0]["wasted_tokens"] > 0
    assert inside["largest"][0]["tool"] == "Bash"


def test_page_shows_chart_tables_and_measured_beside_estimated(team: Team) -> None:
    session = record_talk(team, make_user("alice"), write_reading_talk())
    page = read(sign_in("alice"), f"/sessions/{session.pk}/context/")
    assert 'data-chart="composition-figure"' in page
    assert "measured" in page
    assert "estimated" in page
    assert page.split('id="files-title"')[1].split("</section>")[0].count(PATH) == 1
    assert "wasted tokens" in page


def test_finding_names_the_waste_and_leads_to_the_clearing(team: Team) -> None:
    session = record_talk(team, make_user("alice"), write_reading_talk(reads=6, lines=2))
    page = read(sign_in("alice"), f"/sessions/{session.pk}/context/")
    found = read_context(access.person(make_user("alice")), session, now=session.last_at).inside
    assert found is not None
    assert found.duplicate_count == 1
    assert f"~{say_tokens(found.wasted_tokens)} tokens wasted on 1 file read again" in page
    clearing = found.micro.suggestion
    assert clearing is not None
    assert f"would free ~{say_tokens(clearing.tokens)} tokens." in page
    link = f"/sessions/{session.pk}/compact/?kind={clearing.kind}"
    assert f'href="{link}"' in page
    form = read(sign_in("alice"), link)
    assert re.search(rf'value="{clearing.kind}"[^>]* checked', form)
    assert link not in read(sign_in("vera"), f"/sessions/{session.pk}/context/")


def test_finding_is_left_out_where_no_file_was_read_again(team: Team) -> None:
    session = record_talk(team, make_user("alice"), write_reading_talk(reads=1))
    assert "wasted on" not in read(sign_in("alice"), f"/sessions/{session.pk}/context/")


def test_figure_and_its_table_hold_files_for_readers_alone(team: Team) -> None:
    session = record_talk(team, make_user("alice"), write_reading_talk())
    pages = {name: read(sign_in(name), f"/sessions/{session.pk}/context/") for name in ("alice", "vera")}
    tables = {name: page.split("Context composition, table")[1].split("</table>")[0] for name, page in pages.items()}
    assert ">File</th>" in tables["alice"]
    assert ">File</th>" not in tables["vera"]
    assert f'<td class="num">Read</td><td class="num">{PATH}</td>' in tables["alice"]
    found = read_context(access.person(make_user("alice")), session, now=session.last_at).inside
    assert found is not None
    assert sum(piece.tokens for piece in found.pieces) == pytest.approx(found.estimated_tokens, abs=len(found.pieces))
    own = {(piece.category, piece.name): piece.tokens for piece in found.pieces if piece.path == PATH}
    parts = {(part.category, part.name): part.tokens for part in found.parts}
    assert own == {key: parts[key] for key in (("tool requests", "Read"), ("tool results", "Read"))}


def test_last_prompt_is_one_of_the_conversation(team: Team) -> None:
    session = record_talk(team, make_user("alice"), write_reading_talk())
    last = ApiCall.objects.filter(session=session).order_by("-number")[0]
    before = ask(sign_in("alice"), f"sessions/{session.pk}/context")["measured"]
    last.pk, last.call_id, last.number, last.query_source = None, "aside", last.number + 1, "generate_session_title"
    last.read_tokens = 7
    last.save(force_insert=True)
    assert ask(sign_in("alice"), f"sessions/{session.pk}/context")["measured"] == before


def test_paths_are_withheld_and_numbers_are_not(team: Team) -> None:
    session = record_talk(team, make_user("alice"), write_reading_talk())
    for name, reads in (("alice", True), ("gina", True), ("vera", False)):
        client = sign_in(name)
        page = read(client, f"/sessions/{session.pk}/context/")
        assert (PATH in page) == reads, name
        assert "tool results" in page
        told = ask(client, f"sessions/{session.pk}/context")
        assert bool(told["inside"]["files"]) == reads
        assert bool(told["inside"]["duplicates"][0]["path"]) == reads
        assert told["inside"]["duplicates"][0]["read_count"] == 3
    assert sign_in("charlie").get(f"/sessions/{session.pk}/context/").status_code == 404
    assert sign_in("charlie").get(f"/api/v1/sessions/{session.pk}/context").status_code == 404


def test_without_stored_content_calls_still_tell_the_size(team: Team) -> None:
    session = record_talk(team, make_user("alice"), write_recorded_talk(), stores_content=False)
    page = read(sign_in("alice"), f"/sessions/{session.pk}/context/")
    assert "30.0k tokens" in page
    assert "The composition of the context is not stored." in page
    told = ask(sign_in("alice"), f"sessions/{session.pk}/context")
    assert told["inside"] is None
    assert told["measured"]["read_tokens"] == 10_000
    assert told["measured"]["first_prompt_tokens"] == 50_003


def test_session_without_a_call_says_so(team: Team) -> None:
    session = make_session(team, "session-1", context_tokens=0)
    assert "No context measured yet: the session has no API calls." in read(
        sign_in("vera"), f"/sessions/{session.pk}/context/"
    )


def test_only_what_stands_behind_the_last_compaction_counts(team: Team) -> None:
    session = record_talk(team, make_user("alice"), write_recorded_talk())
    inside = ask(sign_in("alice"), f"sessions/{session.pk}/context")["inside"]
    parts = {(part["category"], part["name"]) for part in inside["parts"]}
    assert {("summary", ""), ("tool results", "Bash")} <= parts
    assert ("tool results", "Read") not in parts


def test_session_of_a_sub_agent_alone_shows_the_sub_agent(team: Team) -> None:
    talk = RecordedTalk("alone", agent_id="a1b2c3")
    talk.ask("Look.")
    talk.reply("alone-1", read=0, written=9_000)
    session = record_talk(team, make_user("alice"), talk)
    told = ask(sign_in("alice"), f"sessions/{session.pk}/context")
    assert told["thread"] == "sub-agent a1b2c3"
    assert told["measured"]["prompt_tokens"] == 9_003
    assert told["inside"]["parts"]


def test_clearing_is_tried_by_size_and_by_pause(team: Team) -> None:
    session = record_talk(team, make_user("alice"), write_reading_talk(reads=6, lines=2))
    told = _preview(session, timedelta(minutes=5))
    assert told.by_size is not None
    assert told.by_size.tokens >= 20_000
    assert told.by_idle_time is not None
    assert told.by_idle_time.result_count == 12 - 5  # the client keeps five
    assert not told.is_idle
    assert not told.is_above_warning
    assert _preview(session, timedelta(hours=3)).is_idle


def test_little_is_not_worth_clearing(team: Team) -> None:
    session = record_talk(team, make_user("alice"), write_reading_talk(reads=1))
    told = _preview(session, timedelta(minutes=5))
    assert (told.by_size, told.by_idle_time) == (None, None)
    assert "No savings: fewer than 20,000 tokens could be cleared." in read(
        sign_in("alice"), f"/sessions/{session.pk}/context/"
    )


def _preview(session: AgentSession, pause: timedelta) -> MicroPreview:
    actor = access.person(make_user("alice"))
    found = read_context(actor, session, now=session.last_at + pause)
    assert found.inside is not None
    return found.inside.micro


def test_queries_do_not_grow_with_the_conversation(team: Team) -> None:
    few = record_talk(team, make_user("alice"), write_reading_talk("few", reads=10, lines=0))
    many = record_talk(team, make_user("alice"), write_reading_talk("many", reads=1000, lines=0))
    client = sign_in("alice")
    for url in ("/sessions/{}/context/", "/api/v1/sessions/{}/context"):
        assert count_queries(client, url.format(few.pk)) == count_queries(client, url.format(many.pk))


def test_what_a_compaction_put_back_unrecorded_has_a_part_of_its_own(team: Team) -> None:
    talk = RecordedTalk("restored")
    talk.ask("Draw.")
    talk.reply("restored-1", {"type": "text", "text": "Well."}, read=0, written=26_000)
    talk.compact(before=60_000)
    talk.reply("restored-2", {"type": "text", "text": "On."}, read=0, written=40_000)
    session = record_talk(team, make_user("alice"), talk)
    inside = ask(sign_in("alice"), f"sessions/{session.pk}/context")["inside"]
    parts = {part["category"]: part["tokens"] for part in inside["parts"]}
    assert 25_900 < parts["system and tools"] <= 26_003
    assert 13_000 < parts["restored, not recorded"] < 14_100
    page = read(sign_in("alice"), f"/sessions/{session.pk}/context/")
    assert "without logging them" in page
