"""Sub-agents whose lines stand inside progress lines of the main transcript: counted in a thread of their own, once."""

from functools import partial
from itertools import permutations
from pathlib import Path

import pytest
from django.test import Client

from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece, Rules, merge_prepared
from dashboard.ingest.transcripts import prepare
from dashboard.models import AgentSession, Scope, Team, TeamPolicy, User
from dashboard.runs.basis import read_basis
from tests.builders import make_key, make_team
from tests.dashboard.ingest.conversation import Conversation
from tests.dashboard.ingest.database_state import read_state
from tests.dashboard.ingest.importing import run_import

pytestmark = pytest.mark.django_db
AGENT = "a1b2c3"


@pytest.fixture
def team() -> Team:
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    return team


def make_agent() -> Conversation:
    """The sub-agent's own file."""
    agent = Conversation("harbour", agent_id=AGENT)
    agent.ask("Find the chart.")
    agent.answer("msg_agent_1", written=9_000, stop="tool_use")
    agent.result("chart.py")
    agent.answer("msg_agent_2", read=9_000, written=400)
    return agent


def make_main(agent: Conversation) -> Conversation:
    """The main transcript, with the sub-agent's lines inside progress lines as clients from 2.1.9 to 2.1.42 wrote."""
    main = Conversation("harbour")
    main.ask()
    main.answer("msg_1", written=30_000, stop="tool_use")
    for line in agent.read_lines():
        nested = {name: line[name] for name in ("type", "message", "uuid", "timestamp", "requestId") if name in line}
        main.write("progress", toolUseID="t1", data={"type": "agent_progress", "agentId": AGENT, "message": nested})
    main.result("Found it.")
    main.answer("msg_2", read=30_000, written=500)
    return main


def take(team: Team, talk: Conversation, name: str) -> None:
    take_in(Origin(team, None, "import"), Piece(talk.data, name, talk.session_id, talk.agent_id))


def test_nested_calls_are_counted_in_their_own_thread(team: Team) -> None:
    take(team, make_main(make_agent()), "main")
    session = AgentSession.objects.get()
    threads = dict(session.threads.values_list("agent_id", "call_count"))
    assert (session.call_count, threads) == (4, {"": 2, AGENT: 2})
    assert session.threads.get(agent_id=AGENT).context_tokens == 9_000 + 400 + 3 + 50
    assert session.context_tokens < 31_000
    assert session.break_count == 0
    thread = read_basis(session, AGENT)
    assert (len(thread.entries), thread.gap_count) == (6, 0)


def test_lines_inside_other_lines_are_no_lines_of_the_file(client: Client, team: Team, tmp_path: Path) -> None:
    """By the upload API, by an import that writes new sessions at once, and by one that adds to a session."""
    agent = make_agent()
    main = make_main(agent)
    _, key = make_key(team, User.objects.get(username="alice"), Scope.INGEST)
    upload = partial(
        client.post, content_type="application/x-ndjson", headers={"Authorization": f"Bearer {key}"}
    )  # fmt: skip
    url = "/api/v1/ingest/transcripts?name={}"
    half = b"".join(main.lines[:4])
    for data, new_count in ((half, 4), (main.data, len(main.lines) - 4), (main.data, 0)):
        told = upload(url.format(f"{main.session_id}.jsonl"), data).json()
        assert (told["lines"], told["new_lines"]) == (data.count(b"\n"), new_count)
    own = upload(url.format(f"{agent.session_id}/subagents/agent-{AGENT}.jsonl"), agent.data).json()
    assert (own["lines"], own["new_lines"]) == (len(agent.lines), len(agent.lines))  # they hold more
    assert AgentSession.objects.get().call_count == 4

    AgentSession.objects.all().delete()
    place = tmp_path / f"{main.session_id}.jsonl"
    for data, new_count in ((half, 4), (main.data, len(main.lines) - 4)):
        place.write_bytes(data)
        told = run_import(tmp_path)
        assert told["lines_new"] == told["lines_read"] == new_count
    assert AgentSession.objects.get().call_count == 4


def test_line_that_stands_in_both_files_is_a_line_of_its_own() -> None:
    agent = make_agent()
    rules = Rules(keeps_content=False, digest_key=b"k" * 32)
    parts = [prepare(Piece(talk.data, "", talk.session_id, talk.agent_id), rules) for talk in (make_main(agent), agent)]
    (main,) = parts[0].sessions
    assert (len(main.nested), main.item_count) == (len(agent.lines), parts[0].line_count)
    for order in (parts, parts[::-1]):
        (both,) = merge_prepared(order).sessions
        assert not both.nested


@pytest.mark.parametrize("order", list(permutations(("main", "agent"))))
def test_own_file_of_the_sub_agent_counts_nothing_twice(team: Team, order: tuple[str, ...]) -> None:
    agent = make_agent()
    files = {"main": make_main(agent), "agent": agent}
    for name in order:
        take(team, files[name], name)
    session = AgentSession.objects.get()
    assert session.call_count == 4
    assert session.output_tokens == 4 * 50
    assert read_basis(session, AGENT).gap_count == 0
    before = read_state()
    for name in order:
        take(team, files[name], name)
    assert read_state() == before
