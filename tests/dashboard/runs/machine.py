"""A machine on which a client wrote sessions and Plimsoll follows them, for tests of what goes on from there."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_django import Settings

from dashboard.ingest.folder_watch import FolderWatch
from dashboard.ingest.follow import Follower
from dashboard.ingest.follow_delivery import IntakeDelivery
from dashboard.ingest.intake import Origin
from dashboard.models import AgentSession, CompactionRun, RunKind, SummarizerName, Team, TeamPolicy
from dashboard.runs.choices import RunChoices
from tests.builders import make_user
from tests.dashboard.ingest.conversation import Conversation
from tests.dashboard.runs.world import make_harbour, run_now

PROJECT = "-home-ann-harbour"
SECRET = "sk-ant-api03-" + "A1b2C3d4E5" * 9 + "-AAAAAAAA"  # a form that redaction takes out of stored lines


@dataclass
class Machine:
    """`root` is what the client calls its projects folder."""

    root: Path
    team: Team

    def keep(self, talk: Conversation) -> Path:
        """The file of a session, as its client would have written it."""
        path = self.root / PROJECT / f"{talk.session_id}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(talk.data)
        return path

    def follow(self) -> None:
        origin = Origin(self.team, make_user("alice"), "follow")
        follower = Follower(origin, (self.root,), IntakeDelivery(origin), watch=FolderWatch(is_polling=True))
        follower.work(wait_seconds=0)
        while follower.waiting_count:
            follower.work(wait_seconds=0)

    def find(self, external_id: str) -> AgentSession:
        return AgentSession.objects.get(team=self.team, external_id=external_id)

    def follow_talk(self, talk: Conversation) -> AgentSession:
        self.keep(talk)
        self.follow()
        return self.find(talk.session_id)


def make_machine(folder: Path, settings: Settings) -> Machine:
    root = folder / "projects"
    root.mkdir()
    settings.LOCAL_MODE = True
    settings.FOLLOW_ROOTS = (root,)
    team = make_harbour()
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    return Machine(root, team)


def compact(session: AgentSession, kind: RunKind = RunKind.FULL, *, pivot_uuid: str = "") -> CompactionRun:
    summarizer = SummarizerName.NONE if kind.is_micro else SummarizerName.EXTRACTIVE
    return run_now(session, RunChoices(kind=kind, summarizer=summarizer, pivot_uuid=pivot_uuid))


def read_lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]
