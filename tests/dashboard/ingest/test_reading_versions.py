"""A later version of the reader corrects what an earlier one stored; sessions without a file keep their figures."""

from pathlib import Path

import msgspec
import pytest
from django.core.management import call_command

from compaction.timeline.observations import READING_VERSION, LineKind, Observation
from dashboard.ingest.file_tail import Place
from dashboard.ingest.folder_watch import FolderWatch
from dashboard.ingest.follow import Follower
from dashboard.ingest.follow_delivery import IntakeDelivery
from dashboard.ingest.intake import Origin, make_rules
from dashboard.ingest.observed import ObservedLine
from dashboard.ingest.picture.drawing import PROJECTION_VERSION
from dashboard.ingest.pushed_lines import Push, PushedLine, PushedSession, settle_push
from dashboard.ingest.segments import pack_segment, read_segment_lines
from dashboard.jobs.perform import perform_due
from dashboard.jobs.post import post_job
from dashboard.models import AgentSession, EntrySegment, FollowedFile, Job, ObservedCompaction, TeamPolicy
from dashboard.policies.in_force import find_policy
from dashboard.push.outbox import KnownFile, Outbox
from tests.builders import make_team
from tests.dashboard.ingest.conversation import Conversation, make_agent, make_conversation
from tests.dashboard.ingest.database_state import read_state

pytestmark = pytest.mark.django_db
OUTPUT = "<local-command-stdout>Bye!</local-command-stdout>"


@pytest.fixture
def origin() -> Origin:
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    return Origin(team, None, "follow")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    talk = Conversation()
    talk.ask()
    talk.answer("msg_1", written=30_000)
    talk.ask(OUTPUT)
    talk.lines.append(b'{"type":"user","cut\n')
    talk.ask("And now a table.")
    talk.answer("msg_2", read=30_000, written=500)
    talk.result("x" * 12_000)
    (tmp_path / "harbour.jsonl").write_bytes(talk.data)
    return tmp_path


def follow(origin: Origin, folder: Path) -> None:
    follower = Follower(origin, (folder,), IntakeDelivery(origin), watch=FolderWatch(is_polling=True))
    for _ in range(30):  # looks: more than these folders need
        follower.work(wait_seconds=0)


def store_as_read_before() -> None:
    """Store the observations as the first version of the reader left them: a command's output was a prompt, nothing
    was estimated."""

    def read_before(line: ObservedLine) -> ObservedLine:
        fact = line.fact
        kind = LineKind.PROMPT if fact.kind is LineKind.OTHER and fact.type == "user" else fact.kind
        return ObservedLine(msgspec.structs.replace(fact, reading_version=1, tokens=None, kind=kind), line.content)

    for segment in EntrySegment.objects.all():
        lines = [read_before(line) for line in read_segment_lines(segment.facts, segment.content)]
        segment.facts = pack_segment(lines).facts
        segment.save()
    FollowedFile.objects.update(reading_version=1)
    AgentSession.objects.update(reading_version=1, projection_version=1)
    project_again()


def project_again() -> Job:
    AgentSession.objects.update(projection_version=1)
    job = post_job("project_sessions", key=f"update {Job.objects.count()}")
    perform_due()
    job.refresh_from_db()
    return job


def read_session() -> AgentSession:
    return AgentSession.objects.get()


def test_followed_files_of_an_earlier_reading_are_read_again(origin: Origin, folder: Path) -> None:
    follow(origin, folder)
    fresh = read_state()
    session = read_session()
    assert (session.turn_count, session.reading_version, session.problem_count) == (2, READING_VERSION, 1)
    assert session.pending_tokens == 4_000
    store_as_read_before()
    outdated = read_session()
    assert (outdated.turn_count, outdated.reading_version, outdated.pending_tokens) == (3, 1, 0)
    follow(origin, folder)
    assert read_state() == fresh
    assert FollowedFile.objects.get().problem_count == 1
    version = read_session().version
    follow(origin, folder)
    assert read_session().version == version


def test_import_reads_files_of_an_earlier_reading_again(origin: Origin, folder: Path) -> None:
    call_command("import", str(folder), team=origin.team.slug, quiet=True)
    fresh = read_state()
    store_as_read_before()
    call_command("import", str(folder), team=origin.team.slug, quiet=True)
    assert read_state() == fresh


def test_imported_files_outside_followed_folders_are_read_again(origin: Origin, folder: Path, tmp_path: Path) -> None:
    (folder / "s" / "subagents").mkdir(parents=True)
    agent = make_agent()
    (folder / "s" / "subagents" / "agent-a1b2c3.jsonl").write_bytes(agent.data)
    gone = Conversation("gone")
    gone.ask()
    (folder / "gone.jsonl").write_bytes(gone.data)
    call_command("import", str(folder), team=origin.team.slug, quiet=True)
    fresh = read_state()
    store_as_read_before()
    (folder / "gone.jsonl").unlink()
    elsewhere = tmp_path / "followed"
    elsewhere.mkdir()
    follow(origin, elsewhere)
    again = read_state()
    for state in (fresh, again):
        for session in state["sessions"]:
            del session["sources"]
    kept = {session["external_id"]: session for session in again["sessions"]}
    assert kept.pop(gone.session_id)["reading_version"] == 1
    assert list(kept.values()) == [each for each in fresh["sessions"] if each["external_id"] in kept]
    assert sorted(FollowedFile.objects.values_list("reading_version", flat=True)) == [1, *[READING_VERSION] * 2]


def test_later_reading_takes_no_content_away(origin: Origin, folder: Path) -> None:
    follow(origin, folder)
    store_as_read_before()
    content = [bytes(segment.content or b"") for segment in EntrySegment.objects.all()]
    TeamPolicy.objects.create(team=origin.team, version=2, stores_content=False)
    follow(origin, folder)
    assert read_session().reading_version == READING_VERSION
    assert [bytes(segment.content or b"") for segment in EntrySegment.objects.all()] == content


def test_session_without_a_file_keeps_its_figures(origin: Origin, folder: Path) -> None:
    follow(origin, folder)
    store_as_read_before()
    before = read_session()
    (folder / "harbour.jsonl").unlink()
    follow(origin, folder)
    after = read_session()
    assert (after.reading_version, after.turn_count, after.spent_usd) == (1, 3, before.spent_usd)


def test_sessions_are_projected_again_after_an_upgrade(origin: Origin, folder: Path) -> None:
    follow(origin, folder)
    fresh = read_state()
    session = read_session()
    AgentSession.objects.update(projection_version=1, turn_count=77, context_tokens=1, level="blocking")
    assert project_again().result == {"sessions": 1, "busy": 0, "failed": 0}
    assert read_state() == fresh
    assert (read_session().projection_version, read_session().sources) == (PROJECTION_VERSION, session.sources)
    version = read_session().version
    job = post_job("project_sessions", key="once more")
    perform_due()
    job.refresh_from_db()
    assert (job.result, read_session().version) == ({"sessions": 0, "busy": 0, "failed": 0}, version)


def test_session_that_cannot_be_read_keeps_no_other_from_being_updated(origin: Origin, folder: Path) -> None:
    talk = make_conversation("basin")
    (folder / "basin.jsonl").write_bytes(talk.data)
    follow(origin, folder)
    broken, sound = AgentSession.objects.order_by("-pk")
    segment = broken.segments.get()
    segment.facts = bytes(segment.facts)[:40]
    segment.save()
    assert project_again().result == {"sessions": 1, "busy": 0, "failed": 1}
    broken.refresh_from_db()
    sound.refresh_from_db()
    assert (broken.projection_version, sound.projection_version) == (1, PROJECTION_VERSION)


def test_losses_of_compactions_are_found_again_after_an_upgrade(origin: Origin, tmp_path: Path) -> None:
    (tmp_path / "harbour.jsonl").write_bytes(make_conversation().data)
    follow(origin, tmp_path)
    perform_due()
    found = ObservedCompaction.objects.get()
    assert found.retained_percent is not None
    ObservedCompaction.objects.update(retained_percent=1, audit={"version": 2})
    project_again()
    perform_due()
    again = ObservedCompaction.objects.get()
    assert (again.retained_percent, again.audit) == (found.retained_percent, found.audit)


def test_machine_that_pushes_sends_again_what_an_earlier_reader_read(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox.sqlite3")
    outbox.use_reader(1)
    known = KnownFile(Place(inode=1, offset=10), is_read=True)
    outbox.keep(b"", 0, {"/transcripts/a.jsonl": known})
    outbox.use_reader(1)
    assert outbox.load_files() == {"/transcripts/a.jsonl": known}
    outbox.use_reader(READING_VERSION)
    assert outbox.load_files() == {}


def test_pushed_reading_is_never_later_than_the_servers_own(origin: Origin) -> None:
    fact = Observation(id="u1", kind=LineKind.PROMPT, type="user", reading_version=9_999)
    push = Push(sessions=[PushedSession("one", [PushedLine(fact)])])
    settled = settle_push(push, make_rules(origin.team, find_policy(origin.team)))
    assert [line.fact.reading_version for line in settled.sessions[0].lines] == [READING_VERSION]
