"""The recorder's desk before a database: joins, breaks with evidence, drops, a database that cannot be used."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from django.db import OperationalError

from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.models import (
    AgentSession,
    ApiCall,
    ApiKey,
    CacheBreak,
    DeletedSession,
    DeletionReason,
    Drop,
    EntrySegment,
    ObservedCompaction,
    PromptShape,
    Scope,
    Team,
    TeamPolicy,
)
from dashboard.pages.recorded_requests import RequestPair, read_request_pair
from dashboard.proxy import recorder
from dashboard.proxy.inbox import Delivery
from dashboard.proxy.recorder import Desk
from dashboard.proxy.wire import Ending, Exchange, Lost, Message
from tests.builders import make_key, make_team, make_user
from tests.dashboard.ingest.conversation import Conversation
from tests.dashboard.proxy.talking import MCP, READ, SESSION, SUM_UP, Client, make_usage, stream_answer, write_events

pytestmark = pytest.mark.django_db


class Table:
    """A desk, and what it confirmed."""

    def __init__(self) -> None:
        self.desk = Desk()
        self.confirmed: list[Message] = []

    def put(self, *messages: Message) -> "Table":
        self.desk.put([self.deliver(message) for message in messages])
        return self

    def deliver(self, message: Message) -> Delivery:
        confirm: Callable[[], None] = lambda: self.confirmed.append(message)  # noqa: E731
        return Delivery(message, 100, confirm)

    def write(self, *messages: Message) -> "Table":
        self.put(*messages)
        self.desk.write()
        return self


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="ann", member="ben")


def talk_for(team: Team, **values: Any) -> Client:
    return Client(team_pk=team.pk, owner_pk=make_user("ben").pk, **values)


def test_calls_become_rows_of_their_session(team: Team) -> None:
    client = talk_for(team)
    table = Table().write(
        client.call("One", "msg_1", usage=make_usage(written=50_000)),
        client.call("Two", "msg_2", usage=make_usage(read=50_000, written=1_000, long=500)),
    )
    session = AgentSession.objects.get()
    assert (session.external_id, session.sources, session.call_count) == (SESSION, ["proxy"], 2)
    assert (session.developer, session.turn_count, session.entry_count) == ("ben", 2, 0)
    second = ApiCall.objects.get(call_id="msg_2")
    assert (second.read_tokens, second.write_5m_tokens, second.write_1h_tokens) == (50_000, 1_000, 500)
    assert (second.number, second.turn, second.request_id) == (2, 2, "req_msg_2")
    assert (second.duration_seconds, second.ttft_seconds) == (2.0, 0.4)
    assert second.at is not None
    assert second.ended_at is not None
    assert (second.ended_at - second.at).total_seconds() == pytest.approx(2.0)
    assert second.provenance["usage"] == "proxy"
    assert len(table.confirmed) == 2


def test_a_call_told_twice_is_one_call(team: Team) -> None:
    first = talk_for(team).call("One", "msg_1")
    Table().write(first, first).write(first)
    Table().write(first)  # by a recorder that was started again
    assert ApiCall.objects.count() == 1
    assert AgentSession.objects.get().call_count == 1


SHARED = {"type": "ephemeral", "scope": "global"}
CHANGES: dict[str, tuple[Callable[[Client], None], str]] = {
    "a tool of an MCP server came": (lambda client: client.tools.append(MCP), "tools_changed"),
    "another system prompt": (lambda client: setattr(client, "system", "You row."), "system_changed"),
    "another effort": (lambda client: client.extra.update(output_config={"effort": "low"}), "effort_changed"),
    "another model": (lambda client: setattr(client, "model", "claude-opus-5"), "model_changed"),
    "a cache shared otherwise": (
        lambda client: client.extra.update(system=[{"type": "text", "text": client.system, "cache_control": SHARED}]),
        "strategy_changed",
    ),
    "history rewritten": (lambda client: client.messages[0].update(content="Another one"), "messages_rewritten"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_break_is_explained_by_the_two_requests(team: Team, name: str) -> None:
    apply_change, cause = CHANGES[name]
    client = talk_for(team, tools=[READ])
    table = Table().write(
        client.call("One", "msg_1", usage=make_usage(written=50_000)),
        client.call("Two", "msg_2", usage=make_usage(read=50_000, written=1_000)),
    )
    apply_change(client)
    table.write(client.call("Three", "msg_3", usage=make_usage(written=52_000)))
    loss = CacheBreak.objects.get()
    assert (loss.call_id, loss.kind, loss.grade) == ("msg_3", "break", "request")
    assert loss.cause == cause
    pair = read_request_pair(AgentSession.objects.get(), loss, with_text=True)
    assert isinstance(pair, RequestPair)
    assert pair.before != pair.after


def test_deletions_from_the_cache_are_announced_by_the_request_that_makes_them(team: Team) -> None:
    client = talk_for(team)
    first = {"type": "text", "text": "One"}
    Table().write(client.call("One", "msg_1", usage=make_usage(written=50_000)))
    for number, names in enumerate((("t1",), ("t1",), ("t1", "t2"), ("t2",)), 2):
        edits = [{"type": "delete", "cache_reference": name} for name in names]
        client.messages[0]["content"] = [first, {"type": "cache_edits", "edits": edits}]
        call = client.call("More", f"msg_{number}", usage=make_usage(read=900, written=49_000))
        Table().write(call)  # by a recorder that was started again, which remembers nothing
    assert list(CacheBreak.objects.order_by("at").values_list("kind", "cause", "detail")) == [
        ("expected", "deletion_announced", ""),
        ("break", "likely_server_side", "900 tokens were still read"),
        ("expected", "deletion_announced", ""),
        ("break", "cached_micro_changed", "+0/-1 deleted results"),
    ]


def test_tokens_that_the_answer_counts_as_deleted_make_a_lower_read_expected(team: Team) -> None:
    client = talk_for(team)
    deleted = make_usage(read=41_000, written=900) | {"cache_deleted_input_tokens": 9_000}
    Table().write(
        client.call("One", "msg_1", usage=make_usage(written=50_000)), client.call("More", "msg_2", usage=deleted)
    )
    assert CacheBreak.objects.values_list("kind", "cause").get() == ("expected", "deletion_announced")


def test_what_the_server_clears_makes_its_call_a_rebuild(team: Team) -> None:
    client = talk_for(team)
    edit = {"type": "clear_tool_uses_20250919", "cleared_input_tokens": 40_000, "cleared_tool_uses": 5}
    managed = {"applied_edits": [edit]}
    events = stream_answer("msg_2", make_usage(read=900, written=9_000), context_management=managed)
    Table().write(
        client.call("One", "msg_1", usage=make_usage(written=50_000)), client.call("More", "msg_2", events=events)
    )
    assert CacheBreak.objects.values_list("kind", "cause").get() == ("expected", "micro_compacted")


def clear(client: Client, number: int, tokens: int, count: int) -> Exchange:
    edit = {"type": "clear_tool_uses_20250919", "cleared_input_tokens": tokens, "cleared_tool_uses": count}
    managed = {"applied_edits": [edit] if tokens else []}
    events = stream_answer(f"msg_{number}", make_usage(read=900), context_management=managed)
    return client.call("More", f"msg_{number}", events=events)


@pytest.mark.parametrize("remembers", [True, False])
def test_what_the_server_clears_again_with_every_call_is_told_once(team: Team, *, remembers: bool) -> None:
    client, table = talk_for(team), Table()
    totals = [(0, 0), (50_000, 8), (50_000, 8), (70_000, 11), (0, 0), (30_000, 4)]
    for number, (tokens, count) in enumerate(totals):
        table = table if remembers else Table()  # a recorder that was started again, which remembers nothing
        table.write(clear(client, number, tokens, count))
    told = ObservedCompaction.objects.order_by("at").values_list("saved_tokens", "cleared_count")
    assert list(told) == [(50_000, 8), (20_000, 3), (30_000, 4)]


def test_what_another_recorder_saw_cleared_is_not_told_again(team: Team) -> None:
    client, one, other = talk_for(team), Table(), Table()
    for table, number, tokens in ((one, 1, 20_000), (other, 2, 50_000), (one, 3, 60_000)):
        table.write(clear(client, number, tokens, number))
    told = ObservedCompaction.objects.order_by("at").values_list("saved_tokens", "cleared_count")
    assert list(told) == [(20_000, 1), (30_000, 1), (10_000, 1)]


def test_a_line_of_the_same_call_does_not_make_the_server_clear_anew(team: Team) -> None:
    client = talk_for(team)
    Table().write(clear(client, 1, 50_000, 8))
    talk = Conversation("joined")
    talk.session_id = SESSION
    talk.now = datetime.fromtimestamp(client.now, UTC)
    talk.ask("More")
    talk.answer("msg_1", read=900)
    take_in(Origin(team, make_user("ben"), "api"), Piece(talk.data, "lines", session_id=SESSION))
    Table().write(clear(client, 2, 50_000, 8))
    assert ObservedCompaction.objects.values_list("saved_tokens", flat=True).get() == 50_000


def test_an_idle_gap_is_inferred_not_blamed_on_the_request(team: Team) -> None:
    client = talk_for(team)
    table = Table().write(client.call("One", "msg_1", usage=make_usage(written=50_000)))
    client.now += 400
    table.write(client.call("Two", "msg_2", usage=make_usage(written=51_000)))
    assert (CacheBreak.objects.get().cause, CacheBreak.objects.get().grade) == ("ttl_expired_5m", "inferred")


def test_a_compaction_without_a_transcript_makes_the_rebuild_expected(team: Team) -> None:
    client = talk_for(team)
    table = Table().write(
        client.call("One", "msg_1", usage=make_usage(written=50_000)),
        client.call("Two", "msg_2", usage=make_usage(read=50_000, written=1_000)),
    )
    summary = client.call("Sum up.", "msg_3", usage=make_usage(read=51_000, output=900))
    asked = json.loads(summary.request_body)
    asked["messages"][-1]["content"] = [{"type": "text", "text": SUM_UP}]
    table.write(msgspec.structs.replace(summary, request_body=json.dumps(asked).encode()))
    client.messages = []
    table.write(client.call("Summary of it all. Go on.", "msg_4", usage=make_usage(read=5_000, written=6_000)))
    assert ApiCall.objects.get(call_id="msg_3").query_source == "compact"
    loss = CacheBreak.objects.get()
    assert (loss.call_id, loss.kind, loss.cause) == ("msg_4", "expected", "compacted")
    assert AgentSession.objects.get().context_tokens == 11_043


def test_a_probe_is_neither_judged_nor_the_size_of_the_context(team: Team) -> None:
    client = talk_for(team)
    table = Table().write(client.call("One", "msg_1", usage=make_usage(written=50_000)))
    probe = talk_for(team, tools=[], extra={"max_tokens": 1}, now=client.now)
    table.write(probe.call("Hi", "msg_p", usage=make_usage(plain=10)))
    client.now += 20
    table.write(client.call("Two", "msg_2", usage=make_usage(read=50_000, written=900)))
    assert CacheBreak.objects.count() == 0
    assert ApiCall.objects.get(call_id="msg_p").query_source == "probe"


def test_sub_agents_are_threads_of_the_session(team: Team) -> None:
    main = talk_for(team)
    agent = talk_for(team, headers={"x-claude-code-session-id": SESSION, "x-claude-code-agent-id": "a1"}, now=main.now)
    Table().write(main.call("One", "msg_1"), agent.call("Look", "msg_2"), main.call("Two", "msg_3"))
    session = AgentSession.objects.get()
    assert {thread.agent_id: thread.call_count for thread in session.threads.all()} == {"": 2, "a1": 1}


# --- joined with a transcript ---


def write_transcript() -> Conversation:
    talk = Conversation("joined")
    talk.session_id = SESSION
    talk.now = datetime.fromtimestamp(Client().now, UTC)
    talk.ask("One")
    talk.wait(18).answer("msg_1", written=50_000, output=40)
    talk.ask("Two")
    talk.wait(17).answer("msg_2", written=51_000, output=40)
    return talk


def proxied_calls(team: Team) -> list[Exchange]:
    client = talk_for(team, tools=[READ])
    calls = [client.call("One", "msg_1", usage=make_usage(written=50_000))]
    client.tools = [READ, MCP]
    return [*calls, client.call("Two", "msg_2", usage=make_usage(written=51_000))]


@pytest.mark.parametrize("proxy_first", [True, False])
def test_transcript_and_proxy_make_one_session_without_counting_twice(team: Team, *, proxy_first: bool) -> None:
    table, talk = Table(), write_transcript()
    origin = Origin(team, make_user("ben"), "api")
    if proxy_first:
        table.write(*proxied_calls(team))
    take_in(origin, Piece(talk.data, "lines", session_id=SESSION))
    if not proxy_first:
        table.write(*proxied_calls(team))
    session = AgentSession.objects.get()
    assert sorted(session.sources) == ["api", "proxy"]
    assert (session.call_count, session.turn_count, session.write_5m_tokens) == (2, 2, 101_000)
    assert session.output_tokens == 80
    assert session.entry_count == len(talk.lines)
    loss = CacheBreak.objects.get()
    assert (loss.cause, loss.grade) == ("tools_changed", "request")
    call = ApiCall.objects.get(call_id="msg_2")
    assert (call.provenance["usage"], call.turn, call.ttft_seconds) == ("proxy", 2, 0.4)


def test_a_compaction_seen_by_both_is_one_compaction_between_the_right_calls(team: Team) -> None:
    talk = Conversation("joined")
    talk.session_id = SESSION
    talk.now = datetime.fromtimestamp(Client().now, UTC)
    talk.ask("One")
    talk.wait(20).answer("msg_1", written=50_000, stop="tool_use")
    client = talk_for(team)
    first = client.call("One", "msg_1", usage=make_usage(written=50_000))
    asked = client.call("Sum up.", "msg_s", usage=make_usage(read=50_000, output=900))
    body = json.loads(asked.request_body)
    body["messages"][-1]["content"] = [{"type": "text", "text": SUM_UP}]
    summary = msgspec.structs.replace(asked, request_body=json.dumps(body).encode())
    talk.wait(30).compact(before=50_000)
    take_in(Origin(team, make_user("ben"), "api"), Piece(talk.data, "lines", session_id=SESSION))
    Table().write(first, summary)
    compaction = ObservedCompaction.objects.get()
    assert compaction.is_mid_task is True
    assert AgentSession.objects.get().call_count == 2


# --- clients without transcripts ---


def test_a_plain_client_gets_lines_of_its_own_where_content_is_stored(team: Team) -> None:
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    client = talk_for(team, headers={})
    Table().write(
        client.call("Where is the harbour?", "msg_1", usage=make_usage(written=5_000)),
        client.call("How deep?", "msg_2", usage=make_usage(read=5_000, written=100), reply="Twelve metres."),
    )
    session = AgentSession.objects.get()
    assert (session.title, session.turn_count, session.call_count) == ("Where is the harbour?", 2, 2)
    assert session.has_content
    assert session.entry_count == 4
    assert session.external_id.startswith("proxy-")
    assert PromptShape.objects.get().content is not None


def test_no_content_is_stored_for_a_team_that_stores_none(team: Team) -> None:
    client = talk_for(team, headers={})
    Table().write(client.call("Where is the harbour?", "msg_1"))
    assert AgentSession.objects.get().title == ""
    assert not AgentSession.objects.get().has_content
    assert EntrySegment.objects.get().content is None
    assert PromptShape.objects.get().content is None


# --- what goes wrong ---


def test_partial_call_is_recorded_as_such(team: Team) -> None:
    events = stream_answer("msg_1", make_usage(read=9_000), words="x" * 400)[:5]
    client = talk_for(team)
    Table().write(client.call("Hello", "msg_1", events=events, ending=Ending.CLIENT_LEFT))
    call = ApiCall.objects.get()
    assert (call.stop_reason, call.is_output_estimated, call.output_tokens) == ("client left", True, 118)


def test_unreadable_calls_and_losses_are_counted(team: Team) -> None:
    broken = talk_for(team).send(b"", "msg_1", request_body=b"{")
    losses = [Lost(f"loss-{count}", team.pk, "recorder too slow or away", count) for count in (7, 5)]
    table = Table().write(broken, *losses)
    counted = {"request not readable": 1, "recorder too slow or away": 12}
    assert count_all_drops(team) == counted
    assert len(table.confirmed) == 3
    table.write(broken, *losses)  # told again by a web process that missed the answers
    assert count_all_drops(team) == counted
    assert len(table.confirmed) == 6


def count_all_drops(team: Team) -> dict[str, int]:
    return {drop.reason: drop.count for drop in Drop.objects.filter(team=team, source="proxy")}


def test_a_drop_that_could_not_be_counted_is_counted_at_the_next_try(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OperationalError("database is locked")

    broken = talk_for(team).send(b"", "msg_1", request_body=b"{")
    table = Table()
    with monkeypatch.context() as patch:
        patch.setattr(recorder, "count_drops_once", refuse)
        with pytest.raises(OperationalError):
            table.put(broken, Lost("loss", team.pk, "recorder too slow or away", 3))
    assert table.confirmed == []
    table.put()
    assert count_all_drops(team) == {"request not readable": 1, "recorder too slow or away": 3}
    assert len(table.confirmed) == 2


def test_a_loss_that_a_restarted_recorder_gets_again_is_counted_once(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(*_: object, **__: object) -> None:
        raise ValueError("cannot be stored")

    talk = talk_for(team)
    broken, unwritten = talk.send(b"", "msg_1", request_body=b"{"), talk.call("One", "msg_2")
    monkeypatch.setattr(recorder, "store", break_down)
    for _ in range(3):
        table = Table().write(broken, Lost("loss", team.pk, "recorder too slow or away", 3), unwritten)
        assert len(table.confirmed) == 3
    assert count_all_drops(team) == {
        "request not readable": 1,
        "recorder too slow or away": 3,
        "not written: ValueError": 1,
    }


def test_a_call_told_again_is_confirmed_when_it_is_written_not_before(team: Team) -> None:
    first = talk_for(team).call("One", "msg_1")
    table = Table().put(first).put(first)
    assert table.confirmed == []
    table.desk.write()
    assert table.confirmed == [first, first]
    assert AgentSession.objects.get().call_count == 1
    table.put(first)
    assert len(table.confirmed) == 3
    assert table.desk.pending_count == 0


def test_calls_of_a_deleted_session_are_counted_as_that(team: Team) -> None:
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    client = talk_for(team)
    first = client.call("One", "msg_1")
    DeletedSession.objects.create(team=team, external_id=SESSION, reason=DeletionReason.PERSON)
    table = Table().write(first)
    assert count_all_drops(team).keys() == {"session was deleted"}
    assert table.confirmed == [first]
    DeletedSession.objects.all().delete()
    table.write(client.call("Two", "msg_2"))
    assert AgentSession.objects.get().call_count == 1


def test_nothing_is_confirmed_while_the_database_cannot_be_written(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OperationalError("database is locked")

    table, client = Table(), talk_for(team)
    with monkeypatch.context() as patch:
        patch.setattr(recorder, "store", refuse)
        for message_id in ("msg_1", "msg_2"):
            table.put(client.call("Hello", message_id))
            with pytest.raises(OperationalError):
                table.desk.write()
    assert table.confirmed == []
    assert table.desk.pending_count == 2
    table.desk.write()
    assert len(table.confirmed) == 2
    assert AgentSession.objects.get().call_count == 2


def test_one_odd_call_does_not_stop_the_others(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    client, table = talk_for(team), Table()
    odd, good = client.call("One", "msg_1"), client.call("Two", "msg_2")
    reads = table.desk._reporter.read

    def stumble(exchange: Exchange, rules: Any) -> Any:
        if exchange is odd:
            raise ZeroDivisionError
        return reads(exchange, rules)

    monkeypatch.setattr(table.desk._reporter, "read", stumble)
    table.write(odd, good)
    assert Drop.objects.get().reason == "not read: ZeroDivisionError"
    assert AgentSession.objects.get().call_count == 1


def test_a_team_that_is_gone_is_no_reason_to_stand_still(team: Team) -> None:
    exchange = talk_for(team).call("One", "msg_1")
    table = Table().write(msgspec.structs.replace(exchange, team_pk=team.pk + 1000))
    assert len(table.confirmed) == 1


@pytest.mark.django_db(transaction=True)
def test_a_team_deleted_a_moment_ago_does_not_end_the_recorder() -> None:
    team = make_team("Harbour", owner="ann", member="ben")
    client, table = talk_for(team), Table()
    table.put(client.call("One", "msg_1"))
    broken = client.send(b"", "msg_2", request_body=b"{")
    Team.objects.get(pk=team.pk).delete()
    table.write(broken, Lost("loss", team.pk, "recorder too slow or away", 3))
    assert len(table.confirmed) == 3
    assert not Drop.objects.exists()
    assert not AgentSession.objects.exists()


def test_use_of_a_key_is_noted(team: Team) -> None:
    key, _ = make_key(team, make_user("ben"), Scope.PROXY)
    Table().write(talk_for(team).call("One", "msg_1", key_pk=key.pk))
    assert ApiKey.objects.get().last_used_at is not None


def test_failed_calls_leave_no_call_behind(team: Team) -> None:
    client = talk_for(team)
    answer = write_events([])
    client.messages.append({"role": "user", "content": "Hi"})
    refused = b'{"type":"error","error":{"type":"overloaded_error"}}'
    headers = {"content-type": "application/json"}
    Table().write(client.send(answer, "x", status=529, response_body=refused, response_headers=headers))
    assert ApiCall.objects.count() == 0
    assert AgentSession.objects.get().call_count == 0
