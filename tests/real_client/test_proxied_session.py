"""One session of the real client through the proxy: every break has its cause from the requests, the page of each names
the block, and the transcript of the same session joins without counting a call twice. Figures: --log-cli-level=INFO."""

import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import msgspec
import pytest

from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.models import (
    AgentSession,
    ApiCall,
    CacheBreak,
    Drop,
    ObservedCompaction,
    Team,
    TeamPolicy,
    UnansweredCall,
)
from dashboard.proxy.inbox import Delivery
from dashboard.proxy.recorder import Desk
from dashboard.proxy.wire import Exchange
from tests.builders import make_team
from tests.dashboard.proxy.serving import KEY, Serving, serving
from tests.real_client import small_mcp_server
from tests.real_client.client import Client, make_client
from tests.real_client.scripted_api import Block, ScriptedApi
from tests.visitors import read, sign_in

pytestmark = pytest.mark.django_db
GAP = timedelta(minutes=6)  # longer than the five minutes that an entry of the cache lives
OPUS, SONNET = "claude-opus-5-5", "claude-sonnet-5-5"
log = logging.getLogger(__name__)


def say(text: str) -> list[Block]:
    return [{"type": "text", "text": text}]


def use(name: str, **given: object) -> list[Block]:
    return [*say(f"Now {name}."), {"type": "tool_use", "id": f"toolu_{uuid4().hex[:12]}", "name": name, "input": given}]


@dataclass
class Proxied:
    """The client, the proxy it talks to, and when the gap was."""

    client: Client
    proxy: Serving
    api: ScriptedApi
    session_id: str = field(default_factory=lambda: str(uuid4()))
    gap_at: datetime | None = None

    @property
    def url(self) -> str:
        return f"{self.proxy.url}/proxy"

    def ask(self, words: str, *answers: list[Block], model: str = OPUS, options: tuple[str, ...] = ()) -> None:
        self.api.script.extend(answers)
        is_known = self.client.projects.exists()
        which = ("--resume" if is_known else "--session-id", self.session_id)
        allowed = ("--allowedTools", "Read,Bash,Agent,WebSearch")
        header = {"ANTHROPIC_CUSTOM_HEADERS": f"X-Plimsoll-Key: {KEY}"}
        # Tools of MCP servers stand in the prefix only where they are not searched for.
        self.client.say(self, words, *which, "--model", model, *allowed, *options, **header, ENABLE_TOOL_SEARCH="false")
        assert not self.api.script, f"{len(self.api.script)} answers were not asked for"

    def pause(self) -> None:
        """The cache forgets as after six minutes; what came before is told as six minutes older."""
        self.api.cache.age(GAP.total_seconds())
        self.gap_at = datetime.now(UTC)

    def list_exchanges(self, team: Team) -> list[Exchange]:
        return [
            msgspec.structs.replace(
                each, team_pk=team.pk, owner_pk=None, started_at=self._move(each.started_at), key_pk=None
            )
            for each in self.proxy.exchanges
        ]

    def list_pieces(self) -> Iterator[Piece]:
        """The client's own files of the session: the conversation and its sub-agents."""
        for path in sorted(self.client.projects.rglob("*.jsonl")):
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            for line in lines:
                if at := line.get("timestamp"):
                    moved = self._move(datetime.fromisoformat(at).timestamp())
                    line["timestamp"] = datetime.fromtimestamp(moved, UTC).isoformat()
            data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
            yield Piece(data, path.name, session_id=self.session_id)

    def _move(self, at: float) -> float:
        is_before = self.gap_at is not None and at < self.gap_at.timestamp()
        return at - GAP.total_seconds() if is_before else at


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    folder = tmp_path_factory.mktemp("proxied")
    client = make_client(folder)
    with ScriptedApi() as api, serving(api.url, folder) as proxy:
        held = Proxied(client, proxy, api)
        hold_session(held)
        yield held


def hold_session(held: Proxied) -> None:
    work = held.client.work
    for name in ("notes.txt", "depth.txt"):
        (work / name).write_text(f"CONTENT of {name}\n" * 300)
    server = {"command": sys.executable, "args": [small_mcp_server.__file__]}
    config = held.client.home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"maps": server}}))
    with_maps = ("--mcp-config", str(config))
    slow, quick = (*with_maps, "--effort", "high"), (*with_maps, "--effort", "low")
    read_notes, read_depth = (use("Read", file_path=str(work / name)) for name in ("notes.txt", "depth.txt"))
    held.ask("Read", read_notes, use("Bash", command="ls", description="List files"), say("Both done."))
    found = say("12 m")  # to the call that the client makes beside its conversation, with the API's own search
    held.ask("Search", use("WebSearch", query="harbour depth"), found, say("Twelve."))
    agent = use("Agent", description="Find the depth", prompt="Read depth.txt", subagent_type="general-purpose")
    held.ask("Send an agent", agent, read_depth, say("Twelve metres."), say("Twelve, it says."))
    held.ask("A server comes", say("I see it."), options=(*with_maps, "--effort", "medium"))
    held.ask("It stays", say("Still there."), options=(*with_maps, "--effort", "medium"))
    held.ask("More effort", say("Thinking."), options=slow)
    held.ask("As before", say("Still thinking."), options=slow)
    held.ask("Less effort", say("Quick."), options=quick)
    held.ask("Another model", say("Here I am."), model=SONNET, options=quick)
    held.ask("The same", say("Yes."), model=SONNET, options=quick)
    held.ask("/compact", say("<analysis>-</analysis><summary>Twelve.</summary>"), model=SONNET, options=quick)
    held.ask("Go on", say("Going on."), model=SONNET, options=quick)
    held.pause()
    held.ask("After a pause", say("Back."), model=SONNET, options=quick)


@pytest.fixture
def team() -> Team:
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    return team


def record(proxied: Proxied, team: Team) -> AgentSession:
    desk = Desk()
    desk.put([Delivery(each, 100, lambda: None) for each in proxied.list_exchanges(team)])
    desk.write()
    return AgentSession.objects.get(team=team)


LOSSES = [
    ("break", "tools_changed", "request"),
    ("break", "effort_changed", "request"),
    ("break", "effort_changed", "request"),
    ("break", "model_changed", "request"),
    ("expected", "compacted", "client"),
    ("break", "ttl_expired_5m", "inferred"),
]


def list_losses(session: AgentSession) -> list[tuple[str, str, str]]:
    return list(CacheBreak.objects.filter(session=session).order_by("at").values_list("kind", "cause", "grade"))


def test_breaks_are_explained_by_the_requests_that_passed(proxied: Proxied, team: Team) -> None:
    session = record(proxied, team)
    calls = ApiCall.objects.filter(session=session)
    log.info("%d calls, %d of them of a sub-agent", calls.count(), calls.exclude(agent_id="").count())
    assert session.external_id == proxied.session_id
    assert calls.count() == len(proxied.api.requests)
    others = UnansweredCall.objects.filter(session=session)  # the client counts tokens when it compacts
    assert {other.kind for other in others} <= {"count"}
    assert calls.count() + others.count() == len(proxied.proxy.exchanges)
    assert calls.exclude(agent_id="").count() == 2
    assert calls.filter(query_source="compact").count() == 1
    assert calls.filter(query_source="side").count() == 1
    assert list_losses(session) == LOSSES
    assert not Drop.objects.exists()


def test_the_page_of_a_break_names_the_block(proxied: Proxied, team: Team) -> None:
    session = record(proxied, team)
    losses = list(CacheBreak.objects.filter(session=session, grade="request").order_by("at"))
    assert [loss.detail for loss in losses] == [
        "+1/-0 tools; added: mcp__maps__find_harbour; MCP server: maps",
        "medium -> default",  # high is what the model does by itself
        "default -> low",
        f"{OPUS} -> {SONNET}",
    ]
    alice = sign_in("alice")
    pages = [read(alice, f"/breaks/{loss.pk}/") for loss in losses]
    first_divergence = pages[0].partition('id="first-divergence"')[2].partition("</div>")[0]
    assert "mcp__maps__find_harbour" in first_divergence
    assert all("Changed settings: effort" in page for page in pages[1:3])
    assert all(f"/breaks/{loss.pk}/" in read(alice, f"/sessions/{session.pk}/breaks/?minor=show") for loss in losses)


@pytest.mark.parametrize("proxy_first", [True, False])
def test_the_transcript_of_the_same_session_joins_without_counting_twice(
    proxied: Proxied, team: Team, *, proxy_first: bool
) -> None:
    if proxy_first:
        record(proxied, team)
    for piece in proxied.list_pieces():
        take_in(Origin(team, None, "api"), piece)
    session = record(proxied, team) if not proxy_first else AgentSession.objects.get(team=team)
    assert sorted(session.sources) == ["api", "proxy"]
    calls = ApiCall.objects.filter(session=session)
    assert calls.count() == len(proxied.api.requests)
    assert len({call.request_id for call in calls}) == calls.count()
    assert session.call_count == calls.count()
    assert list_losses(session) == LOSSES
    assert ObservedCompaction.objects.filter(session=session).count() == 1
