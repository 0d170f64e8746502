"""A rule that is switched off or on: files are read again, and stored text follows, by each way that can do so."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Sum

from dashboard.accounts.local import ensure_local_owner
from dashboard.ingest.folder_watch import FolderWatch
from dashboard.ingest.follow import Follower
from dashboard.ingest.follow_delivery import IntakeDelivery
from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.ingest.segments import expand
from dashboard.models import AgentSession, EntrySegment, PromptShape, RedactionCount, Scope, Team, User
from dashboard.policies.changes import change_policy, undo_change
from dashboard.policies.in_force import find_policy
from tests.builders import make_key, make_team
from tests.dashboard.ingest.conversation import Conversation
from tests.dashboard.ingest.importing import run_import
from tests.dashboard.push.machine import Machine

pytestmark = pytest.mark.django_db
TOKEN, STRIPE = "ghp_" + "Zq9" * 12, "sk_live_" + "4eC39HqLyjWDarjt"
LONG_AGO = 1_700_000_000


@pytest.fixture
def team() -> Team:
    team = make_team("Harbour", owner="olga", member="mia")
    change(team, stores_content=True)
    return team


def change(team: Team, **values: Any) -> None:
    current = find_policy(team)
    change_policy(team, replace(current, **values), by=User.objects.get(username="olga"), base_version=current.version)


def switch_off(team: Team, *rules: str) -> None:
    change(team, disabled_rules=frozenset(rules))


def make_talk() -> Conversation:
    talk = Conversation()
    talk.ask(f"Use {TOKEN} please.")
    talk.answer("m1", written=100)
    talk.result(f"{TOKEN} and {STRIPE} and B-123456.")
    talk.ask("Nothing secret here.")
    talk.note("api-request-shape", shapeHash="h1", shape={"system": [f"The key is {STRIPE}."], "tools": []})
    return talk


def stored_text() -> str:
    contents = EntrySegment.objects.exclude(content=None).values_list("content", flat=True)
    return "\n".join(expand(content).decode() for content in contents if content is not None)


def counts() -> dict[str, int]:
    rows = RedactionCount.objects.values("rule").annotate(total=Sum("count")).order_by()
    return {row["rule"]: row["total"] for row in rows}


class Following:
    def __init__(self, root: Path, team: Team, talk: Conversation) -> None:
        self.path = root / "-work" / f"{talk.session_id}.jsonl"
        self.path.parent.mkdir(parents=True)
        self.path.write_bytes(talk.data)
        os.utime(self.path, (LONG_AGO, LONG_AGO))
        origin = Origin(team, User.objects.get(username="olga"), "follow")
        self.follower = Follower(origin, (root,), IntakeDelivery(origin), watch=FolderWatch(is_polling=True))

    def catch_up(self) -> None:
        self.follower._walk_at = 0.0
        self.follower.work(wait_seconds=0)
        while self.follower.waiting_count:
            self.follower.work(wait_seconds=0)


def test_followed_file_is_read_again_when_a_rule_is_switched_off_and_on(team: Team, tmp_path: Path) -> None:
    following = Following(tmp_path, team, make_talk())
    following.catch_up()
    assert TOKEN not in stored_text()
    assert counts() == {"github-token": 2, "stripe-key": 2}
    before = AgentSession.objects.get()

    switch_off(team, "github-token")
    following.catch_up()
    assert stored_text().count(TOKEN) == 2
    assert STRIPE not in stored_text()
    assert counts() == {"stripe-key": 2}
    assert TOKEN in AgentSession.objects.get().title

    switch_off(team)
    following.catch_up()
    assert TOKEN not in stored_text()
    assert counts() == {"github-token": 2, "stripe-key": 2}
    after = AgentSession.objects.get()
    assert (after.title, after.entry_count, after.call_count) == (before.title, before.entry_count, before.call_count)
    version = after.version
    following.catch_up()
    assert AgentSession.objects.get().version == version


def test_undo_reads_again_and_a_pattern_of_the_team_does_too(team: Team, tmp_path: Path) -> None:
    following = Following(tmp_path, team, make_talk())
    following.catch_up()
    change(team, own_patterns={"badge": "B-[0-9]{6}"})
    following.catch_up()
    assert "B-123456" not in stored_text()
    assert counts()["badge"] == 1
    undo_change(team, find_policy(team).version, by=None)
    following.catch_up()
    assert "B-123456" in stored_text()
    assert "badge" not in counts()


def test_a_system_prompt_follows_its_file(team: Team, tmp_path: Path) -> None:
    following = Following(tmp_path, team, make_talk())
    following.catch_up()
    for rules, has_secret in ((("stripe-key",), True), ((), False)):
        switch_off(team, *rules)
        following.catch_up()
        shape = PromptShape.objects.get()
        assert shape.content is not None
        assert (STRIPE in expand(shape.content).decode(), shape.is_redacted) == (has_secret, not has_secret)
        assert RedactionCount.objects.filter(shape=shape).exists() != has_secret


def test_lines_without_a_secret_are_not_written_again(team: Team, tmp_path: Path) -> None:
    talk = Conversation()
    talk.ask("Nothing secret here.")
    talk.answer("m1", written=100, words="Nothing at all.")
    following = Following(tmp_path, team, talk)
    following.catch_up()
    version = AgentSession.objects.get().version
    switch_off(team, "github-token")
    following.catch_up()
    assert AgentSession.objects.get().version == version


def test_text_that_is_sent_again_follows_the_rules_whatever_came_late(team: Team) -> None:
    """An upload keeps its marks until it comes again; a batch of the older rules changes nothing after that."""
    origin, talk = Origin(team, User.objects.get(username="olga"), "upload"), make_talk()
    piece = Piece(talk.data, "talk", talk.session_id)
    take_in(origin, piece)
    switch_off(team, "github-token")
    assert TOKEN not in stored_text()
    take_in(origin, piece)
    assert TOKEN in stored_text()
    change(team, thresholds={"preset": "early"})  # another change of the policy is no change of the rules
    assert find_policy(team).redaction_version == 2
    switch_off(team)
    take_in(origin, piece)
    assert TOKEN not in stored_text()


def test_file_that_is_gone_keeps_its_marks(team: Team, tmp_path: Path) -> None:
    following = Following(tmp_path, team, make_talk())
    following.catch_up()
    following.path.unlink()
    switch_off(team, "github-token")
    following.catch_up()
    assert TOKEN not in stored_text()
    assert counts() == {"github-token": 2, "stripe-key": 2}


def test_pusher_learns_the_rules_and_sends_its_files_again(team: Team, tmp_path: Path) -> None:
    key = make_key(team, User.objects.get(username="mia"), Scope.INGEST)[1]
    machine, talk = Machine(tmp_path, key), make_talk()
    machine.write(talk)
    machine.push()
    assert counts() == {"github-token": 2, "stripe-key": 2}
    assert all(TOKEN.encode() not in body for body in machine.wire.bodies)
    switch_off(team, "github-token")
    talk.ask("Another line.")
    machine.write(talk, start=-1)
    machine.push()
    assert "The team's redaction rules changed. Sending everything again." in machine.told
    machine.push()
    assert (TOKEN in stored_text(), STRIPE in stored_text()) == (True, False)
    switch_off(team)
    machine.restart()  # the rules changed while it was off
    machine.push()
    assert TOKEN not in stored_text()
    assert counts() == {"github-token": 2, "stripe-key": 2}
    machine.stop()


def test_server_redacts_what_a_machine_with_older_rules_sends(team: Team, tmp_path: Path) -> None:
    switch_off(team, "github-token")
    key = make_key(team, User.objects.get(username="mia"), Scope.INGEST)[1]
    machine = Machine(tmp_path, key)
    switch_off(team)  # it does not know yet
    machine.write(make_talk())
    machine.push()
    assert TOKEN not in stored_text()
    machine.stop()


def test_imported_file_is_read_again_with_the_next_import(tmp_path: Path) -> None:
    owner = ensure_local_owner()
    team = Team.objects.get(is_local=True)
    talk = make_talk()
    path = tmp_path / "projects" / "-work" / f"{talk.session_id}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(talk.data)
    run_import(tmp_path)
    assert counts() == {"github-token": 2, "stripe-key": 2}
    run_import(tmp_path, reread=True)
    assert counts() == {"github-token": 2, "stripe-key": 2}
    for rules, has_secret in ((frozenset({"github-token"}), True), (frozenset[str](), False)):
        current = find_policy(team)
        change_policy(team, replace(current, disabled_rules=rules), by=owner, base_version=current.version)
        assert (TOKEN in stored_text()) != has_secret, "stored text waits for the import"
        run_import(tmp_path)
        assert (TOKEN in stored_text()) == has_secret
    assert counts() == {"github-token": 2, "stripe-key": 2}
