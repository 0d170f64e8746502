"""A program whose calls pass the proxy, and the fake API that answers them and writes its summaries."""

import json
import time
import urllib.request
from dataclasses import dataclass, field

from pytest_django import Settings

from dashboard.models import AgentSession, Team, TeamPolicy
from dashboard.proxy.inbox import Delivery
from dashboard.proxy.recorder import Desk
from dashboard.proxy.wire import Exchange
from dashboard.runs.settings_changes import set_key
from tests.builders import make_user
from tests.dashboard.proxy.talking import Client
from tests.dashboard.runs.world import make_harbour
from tests.fakes.messages_api import MessagesApi

KEY = "sk-ant-api03-key-of-the-harbour-0000"
VERSION, BETAS = "2023-06-01", "context-1m-2025-08-07, interleaved-thinking-2025-05-14"


@dataclass
class Sailor:
    """A program on the Messages API whose calls pass the proxy: asked of the fake, then told to the recorder."""

    api: MessagesApi
    team: Team
    client: Client = field(default_factory=lambda: Client(headers={}, model="claude-opus-5", extra={"stream": False}))
    desk: Desk = field(default_factory=Desk)

    def say(self, words: str) -> None:
        client = self.client
        client.team_pk, client.owner_pk, client.now = self.team.pk, make_user("alice").pk, time.time() - 20
        client.headers |= {"anthropic-version": VERSION, "anthropic-beta": BETAS}
        client.messages.append({"role": "user", "content": words})
        raw = json.dumps(client.body()).encode()
        answer = self._ask(raw)
        told = json.loads(answer)
        headers = {"content-type": "application/json", "request-id": f"req_{told['id']}"}
        exchange = client.send(answer, told["id"], request_body=raw, response_headers=headers)
        client.messages.append({"role": "assistant", "content": told["content"]})
        self.tell(exchange)

    def tell(self, exchange: Exchange) -> None:
        self.desk.put([Delivery(exchange, 100, lambda: None)])
        self.desk.write()

    def _ask(self, raw: bytes) -> bytes:
        headers = {"content-type": "application/json", "x-api-key": KEY, "anthropic-version": VERSION}
        request = urllib.request.Request(f"{self.api.url}/v1/messages", raw, headers)
        with urllib.request.urlopen(request, timeout=5) as response:
            body: bytes = response.read()
        return body

    @property
    def session(self) -> AgentSession:
        return AgentSession.objects.get(team=self.team)


def make_sailor(api: MessagesApi, settings: Settings, **thresholds: object) -> Sailor:
    """Of a team that stores content and has a key; the fake API stands where a model would be asked."""
    settings.PAID_SUMMARIZER = "dashboard.runs.claude.open_claude"
    settings.ANTHROPIC_BASE_URL, api.known_key = api.url, KEY
    team = make_harbour()
    TeamPolicy.objects.create(team=team, version=1, stores_content=True, thresholds=thresholds)
    set_key(team, KEY, by=None)
    return Sailor(api, team)
