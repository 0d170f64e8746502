"""R7 through the database: a followed transcript gives the rows of one read, wherever writes to it were cut.

Cuts at line ends and a byte beside them in every run, some random ones; 500 of these with PLIMSOLL_TEST_LONG=1.
"""

import json
import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from dashboard.ingest.folder_watch import FolderWatch
from dashboard.ingest.follow import Follower
from dashboard.ingest.follow_delivery import IntakeDelivery
from dashboard.ingest.intake import Origin
from dashboard.models import AgentSession, FollowedFile, PromptShape, TeamPolicy
from tests.builders import make_team
from tests.dashboard.ingest.conversation import Conversation, make_agent, make_conversation
from tests.dashboard.ingest.database_state import read_state
from tests.faults.figures import IS_LONG

pytestmark = pytest.mark.django_db
LONG_AGO = 1_700_000_000
RANDOM_CUTS = 500 if IS_LONG else 20


def make_awkward() -> Conversation:
    """Every kind of line that matters to a number, and those that are hard to cut: two objects on one, characters of
    several bytes, endings of another system, a request's shape, an interruption, a sub-agent's lines inside progress
    lines, a call without an answer."""
    talk = make_conversation()
    talk.note("api-request-shape", shapeHash="h1", shape={"system": ["You draw charts."], "tools": [{"name": "Read"}]})
    talk.ask("zwölf Boxkämpfer 🥊 über den Sylter Deich")
    talk.lines[-1] = json.dumps(json.loads(talk.lines[-1]), ensure_ascii=False).encode() + b"\n"
    talk.answer("msg_awkward", read=30_000, written=500, words="Ja. 🥊")
    talk.lines[-2:] = [talk.lines[-2].rstrip(b"\n") + talk.lines[-1]]
    talk.lines[-1] = talk.lines[-1].rstrip(b"\n") + b"\r\n"
    talk.lines.append(b"\n")
    talk.ask("[Request interrupted by user]")
    talk.write("user", message={"role": "user", "content": "Go on."}, permissionMode="plan")
    for line in make_agent().read_lines():
        nested = {name: line[name] for name in ("type", "message", "uuid", "timestamp")}
        talk.write("progress", toolUseID="t1", data={"type": "agent_progress", "agentId": "a1b2c3", "message": nested})
    talk.write("system", subtype="api_error", error={"status": 529, "error": {"error": {"type": "overloaded_error"}}})
    return talk


class Followed:
    """One transcript and its follower. Each writing is at a later moment, all of them long ago: nothing is young."""

    def __init__(self, folder: Path, origin: Origin, name: str) -> None:
        self.path, self.origin = folder / f"{name}.jsonl", origin
        self._clock = LONG_AGO
        self.restart()

    def restart(self) -> None:
        watch = FolderWatch(is_polling=True)
        self.follower = Follower(self.origin, (self.path.parent,), IntakeDelivery(self.origin), watch=watch)

    def write(self, data: bytes, *, append: bool = True) -> None:
        with self.path.open("ab" if append else "wb") as file:
            file.write(data)
        self._clock += 1
        os.utime(self.path, (self._clock, self._clock))
        self.catch_up()

    def rotate(self, data: bytes) -> None:
        """Another file under the same name, as programs write that save beside and rename."""
        beside = self.path.with_suffix(".new")
        beside.write_bytes(data)
        beside.replace(self.path)
        self.write(b"")

    def catch_up(self) -> None:
        self.follower.work(wait_seconds=0)
        while self.follower.waiting_count:
            self.follower.work(wait_seconds=0)

    def forget_everything(self) -> None:
        AgentSession.objects.all().delete()
        PromptShape.objects.all().delete()
        FollowedFile.objects.all().delete()
        self.path.unlink(missing_ok=True)
        self.restart()


@pytest.fixture(autouse=True)
def _walk_at_every_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.ingest.follow.POLL_EVERY_SECONDS", 0.0)
    monkeypatch.setattr("dashboard.ingest.follow.REST_PER_WALK", 0)


@pytest.fixture
def talk() -> Conversation:
    return make_awkward()


@pytest.fixture
def followed(tmp_path: Path, talk: Conversation) -> Followed:
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    return Followed(tmp_path, Origin(team, None, "follow"), talk.session_id)


@pytest.fixture
def wanted(followed: Followed, talk: Conversation) -> dict[str, list[Any]]:
    """The rows of one read."""
    followed.write(talk.data)
    state = read_state()
    assert all(state[name] for name in ("ApiCall", "CacheBreak", "ObservedCompaction", "UnansweredCall", "uses"))
    followed.forget_everything()
    return state


def find_wrong_cuts(followed: Followed, data: bytes, wanted: object, cuts: Iterable[int]) -> list[int]:
    wrong = []
    for cut in cuts:
        followed.write(data[:cut])
        followed.write(data[cut:])
        if read_state() != wanted:
            wrong.append(cut)
        followed.forget_everything()
    return wrong


def test_cut_at_every_line_end_and_beside_it(
    followed: Followed, talk: Conversation, wanted: dict[str, list[Any]]
) -> None:
    ends = [sum(map(len, talk.lines[:count])) for count in range(1, len(talk.lines))]
    around = [end + beside for end in ends for beside in (-1, 0, 1)]
    cuts = around if connection.vendor == "sqlite" or IS_LONG else around[::5]
    assert find_wrong_cuts(followed, talk.data, wanted, cuts) == []


def test_cut_anywhere(followed: Followed, talk: Conversation, wanted: dict[str, list[Any]]) -> None:
    chance = random.Random(7)
    inside_character = talk.data.index("🥊".encode()) + 2
    cuts = [inside_character, *(chance.randrange(1, len(talk.data)) for _ in range(RANDOM_CUTS))]
    assert find_wrong_cuts(followed, talk.data, wanted, cuts) == []


def test_written_in_many_small_pieces_over_restarts(
    followed: Followed, talk: Conversation, wanted: dict[str, list[Any]]
) -> None:
    chance = random.Random(17)
    data = talk.data
    while data:
        size = chance.randrange(1, 1_500)
        followed.write(data[:size])
        data = data[size:]
        if chance.random() < 0.3:
            followed.restart()
    assert read_state() == wanted


def truncate(followed: Followed, talk: Conversation) -> None:
    followed.write(talk.data)
    followed.write(b"".join(talk.lines[:3]), append=False)
    followed.write(b"".join(talk.lines[3:]))


def rotate(followed: Followed, talk: Conversation) -> None:
    followed.write(b"".join(talk.lines[:9]))
    followed.rotate(b"".join(talk.lines[5:]))


def rewrite(followed: Followed, talk: Conversation) -> None:
    """The same lines in another order, as a client writes that compacts its file."""
    followed.write(b"".join(talk.lines[:12]))
    followed.write(b"".join(reversed(talk.lines)), append=False)


def end_without_ending(followed: Followed, talk: Conversation) -> None:
    followed.write(talk.data[:-1])
    followed.write(b"\n")


def write_endings_of_another_system(followed: Followed, talk: Conversation) -> None:
    data = talk.data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    followed.write(data[: len(data) // 2])
    followed.write(data[len(data) // 2 :])


@pytest.mark.parametrize(
    "happen",
    [truncate, rotate, rewrite, end_without_ending, write_endings_of_another_system],
    ids=lambda each: each.__name__,
)
def test_whatever_happens_to_the_file(
    followed: Followed,
    talk: Conversation,
    wanted: dict[str, list[Any]],
    happen: Callable[[Followed, Conversation], None],
) -> None:
    happen(followed, talk)
    assert read_state() == wanted
