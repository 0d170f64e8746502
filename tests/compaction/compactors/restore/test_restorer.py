"""What comes back, in which order and within which budgets; and a reason for everything that does not."""

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.threads import split_threads
from compaction.compactors.extractive.summarizer import ExtractiveSummarizer
from compaction.compactors.outcome import Trigger
from compaction.compactors.restore.budget import RestoreBudgets
from compaction.compactors.restore.items import RestoredContext, RestoredItem, RestoredKind, RestoredState
from compaction.compactors.restore.restorer import ContextRestorer
from compaction.compactors.run import CompactionRequest, RunPorts
from compaction.compactors.selections import compact_full
from compaction.context.tokens import count_entry_tokens
from compaction.errors import NothingToCompact
from compaction.ports import FreshFile
from compaction.transcripts.attachments import render_attachment
from compaction.transcripts.chain import follow_chain
from compaction.transcripts.client_protocol import SKILL_ATTACHMENTS
from compaction.transcripts.entries import Entry
from compaction.transcripts.transcript import read_transcript
from compaction.transcripts.writer import write_entry
from tests.compaction.compactors.checks import check_chain, check_conversation, check_outcome, check_written
from tests.compaction.compactors.sessions import ROOT, Session, make_session, sessions
from tests.compaction.compactors.talks import NOW, talks
from tests.compaction.recorded import each_recorded, read_recorded


def restore(session: Session, kept: int = 0, **budgets: int) -> RestoredContext:
    restorer = ContextRestorer(budgets=RestoreBudgets(**budgets))
    return restorer(session.entries, session.entries[len(session.entries) - kept :], now=NOW)


def of_kind(restored: RestoredContext, kind: RestoredKind) -> list[RestoredItem]:
    return [item for item in restored.items if item.kind is kind]


def shown(item: RestoredItem) -> str:
    assert item.entry is not None
    return render_attachment(item.entry)


def test_the_budgets_are_the_clients() -> None:
    budgets = RestoreBudgets()
    assert (budgets.max_files, budgets.file_tokens, budgets.all_files_tokens) == (5, 5_000, 50_000)
    assert (budgets.skill_tokens, budgets.all_skills_tokens) == (5_000, 25_000)
    assert (budgets.server_tokens, budgets.all_servers_tokens) == (5_000, 25_000)
    assert budgets.overall_tokens is None


def test_the_five_most_recent_files_come_back_newest_first_with_their_age() -> None:
    session = Session()
    for number in range(7):
        session.read(f"{ROOT}/f{number}.py", f"content {number}")
    files = of_kind(restore(session), RestoredKind.FILE)
    assert [item.name[-5:-3] for item in files if item.entry] == ["f6", "f5", "f4", "f3", "f2"]
    assert {item.code for item in files if not item.entry} == {"older_file"}
    assert shown(files[0]) == (
        f"{ROOT}/f6.py (as the transcript shows it, 29 minutes old; it may have changed since)\ncontent 6"
    )


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (f"{ROOT}/CLAUDE.md", "memory_file"),
        (f"{ROOT}/sub/CLAUDE.local.md", "memory_file"),
        (f"{ROOT}/.claude/rules/style.md", "memory_file"),
        ("/home/dev/.claude/projects/-home-dev-shop/s-1.jsonl", "transcript"),
        ("/home/dev/.claude/plans/green-fox.md", "plan_file"),
    ],
)
def test_files_that_come_by_another_way_stay_away_and_take_no_place(path: str, code: str) -> None:
    session = Session()
    session.read(f"{ROOT}/a.py", "a")
    session.write(path, "text")
    first, second = of_kind(restore(session, max_files=1), RestoredKind.FILE)
    assert (first.name, first.code, first.state) == (path, code, RestoredState.SKIPPED)
    assert second.state is RestoredState.RESTORED


def test_files_visible_in_what_is_kept_are_not_told_twice() -> None:
    session = Session()
    session.read("/a", "a")
    session.write("/b", "b")
    files = {item.name: item.code for item in of_kind(restore(session, kept=2), RestoredKind.FILE)}
    assert files == {"/b": "still_visible", "/a": ""}


def test_a_file_known_only_by_name_is_not_restored_and_nothing_is_opened() -> None:
    session = Session()
    session.do("Read", [{"type": "image", "source": {}}], file_path="/etc/passwd")
    (item,) = of_kind(restore(session), RestoredKind.FILE)
    assert (item.state, item.code) == (RestoredState.SKIPPED, "content_unknown")
    assert item.reason.startswith("Not restored")


def test_a_long_file_is_cut_at_a_line_with_a_mark_and_counts_as_a_part_later() -> None:
    session = Session()
    session.read("/long", "\n".join(f"line {number}" for number in range(5_000)))
    (item,) = of_kind(restore(session), RestoredKind.FILE)
    assert item.state is RestoredState.TRUNCATED
    assert 4_900 <= item.tokens <= 5_000
    assert shown(item).endswith("read it for the rest]")
    again = Session(entries=[item.entry] if item.entry else [])
    (second,) = of_kind(restore(again), RestoredKind.FILE)
    assert "lines 1 to 2" in shown(second)
    assert "29 minutes old" in shown(second)


def test_a_part_that_was_read_says_which_lines_it_shows() -> None:
    session = Session()
    session.do("Read", "    40→forty\n    41→more", file_path="/a", offset=40)
    (item,) = of_kind(restore(session), RestoredKind.FILE)
    assert "(lines 40 to 41, as the transcript shows them" in shown(item)


class Shelf:
    """A file source that gives some paths and remembers all it was asked for."""

    def __init__(self, **files: str) -> None:
        self.files = files
        self.asked: list[str] = []

    def read_file(self, path: str, *, limit_bytes: int) -> FreshFile | None:
        self.asked.append(path)
        text = self.files.get(path.strip("/"))
        return None if text is None else FreshFile(text[:limit_bytes])


def test_fresh_content_comes_only_from_a_source_that_was_put_in() -> None:
    session = Session()
    session.read("/b", "old b")
    session.read("/a", "old a")
    shelf = Shelf(a="new a")
    restored = ContextRestorer(source=shelf)(session.entries, (), now=NOW)
    first, second = of_kind(restored, RestoredKind.FILE)
    assert shown(first) == "/a (read again now)\nnew a"
    assert shown(second).endswith("old b")
    assert shelf.asked == ["/a", "/b"]


def test_todos_come_back_whole_unless_they_are_still_in_sight() -> None:
    session = make_session()
    (item,) = of_kind(restore(session), RestoredKind.TODOS)
    assert "- [in_progress] Guard against an empty token\n- [pending] Update the README" in shown(item)
    (item,) = of_kind(restore(session, kept=len(session.entries)), RestoredKind.TODOS)
    assert item.code == "still_visible"
    assert of_kind(restore(Session()), RestoredKind.TODOS) == []


def test_the_plan_comes_back_whole_and_plan_mode_stays_on() -> None:
    session = Session()
    session.do("EnterPlanMode", "ok")
    session.write("/home/dev/.claude/plans/p.md", "step one\n" * 4_000)
    session.edit("/home/dev/.claude/plans/p.md", "step one\n", "step zero\n")
    plan, mode = (of_kind(restore(session), kind)[0] for kind in (RestoredKind.PLAN, RestoredKind.PLAN_MODE))
    assert shown(plan).startswith("The plan for this work, whole (/home/dev/.claude/plans/p.md):\nstep zero\nstep one")
    assert plan.tokens > 5_000
    assert "Plan mode is still on" in shown(mode)
    session.do("ExitPlanMode", "User has approved your plan", plan="the plan")
    restored = restore(session)
    assert shown(of_kind(restored, RestoredKind.PLAN)[0]).endswith("\nthe plan")
    assert of_kind(restored, RestoredKind.PLAN_MODE) == []


def test_a_refused_plan_leaves_plan_mode_on_and_the_permission_mode_decides() -> None:
    session = Session()
    session.say("plan it", permissionMode="plan")
    session.do("ExitPlanMode", "rejected", plan="first draft", is_error=True)
    assert of_kind(restore(session), RestoredKind.PLAN_MODE)
    session.say("go", permissionMode="default")
    assert not of_kind(restore(session), RestoredKind.PLAN_MODE)


def test_skills_come_back_newest_first_and_cut() -> None:
    session = Session()
    session.do("Skill", "Launching skill: docs", skill="docs")
    session.say("Base directory for this skill: /s/docs\n\n# Docs", isMeta=True, sourceToolUseID="use-0")
    session.say("Base directory for this skill: /s/review\n\n" + "look " * 9_000, isMeta=True)
    skills = of_kind(restore(session), RestoredKind.SKILL)
    assert [(item.name, item.state) for item in skills] == [
        ("review", RestoredState.TRUNCATED),
        ("docs", RestoredState.RESTORED),
    ]
    assert skills[0].tokens <= 5_000
    assert "[cut here: the skill is longer" in shown(skills[0])
    (kept, _) = of_kind(restore(session, kept=1), RestoredKind.SKILL)
    assert kept.code == "still_visible"


@pytest.mark.parametrize("kind", sorted(SKILL_ATTACHMENTS))
def test_skill_listings_are_not_announced_again(kind: str) -> None:
    session = Session()
    session.attach_fields(kind, names=["docs"], content="- docs: writes documentation")
    session.read("/a", "a")
    restored = restore(session)
    assert [item.kind for item in restored.items] == [RestoredKind.FILE]


def test_running_and_unread_background_tasks_come_back_so_that_none_starts_twice() -> None:
    session = Session()
    session.do("Agent", "Async agent launched. agentId: a1", description="audit", run_in_background=True)
    session.do("Agent", "report", description="waited for", details={"agentId": "a9", "status": "completed"})
    session.do("Bash", "started", command="make serve", details={"backgroundTaskId": "b1"})
    tasks = of_kind(restore(session), RestoredKind.AGENT)
    assert [item.name for item in tasks] == ["audit", "make serve"]
    assert 'Background task a1 ("audit"): running.' in shown(tasks[0])
    session.say("<task-notification><task-id>a1</task-id><status>completed</status></task-notification>")
    session.do("KillShell", "ok", shell_id="b1")
    tasks = of_kind(restore(session), RestoredKind.AGENT)
    assert [(item.name, item.code) for item in tasks] == [("audit", "ended_and_read"), ("make serve", "ended_and_read")]


def test_a_result_nobody_has_seen_is_unread() -> None:
    session = Session()
    session.do("Task", "agentId: a1", description="audit", run_in_background=True)
    session.say("<task-notification><task-id>a1</task-id><status>completed</status></task-notification>")
    (item,) = of_kind(restore(session), RestoredKind.AGENT)
    assert shown(item).endswith("Its result has not been read yet.")
    session.do("TaskOutput", "text", task_id="a1", details={"status": "completed"})
    (item,) = of_kind(restore(session), RestoredKind.AGENT)
    assert item.state is RestoredState.SKIPPED


def test_tools_agents_and_servers_are_told_again_as_they_are_now() -> None:
    session = Session()
    session.attach_fields(
        "deferred_tools_delta", addedNames=["Web", "Cron"], addedLines=["Web", "Cron"], removedNames=[]
    )
    session.attach_fields("deferred_tools_delta", addedNames=["LSP"], addedLines=["LSP"], removedNames=["Cron"])
    session.attach_fields("agent_listing_delta", addedTypes=["Explore"], addedLines=["Explore: looks around"])
    session.attach_fields("mcp_instructions_delta", addedNames=["db", "old"], addedBlocks=["ask first", "x"])
    session.attach_fields("mcp_instructions_delta", addedNames=[], addedBlocks=[], removedNames=["old"])
    restored = restore(session)
    assert shown(of_kind(restored, RestoredKind.TOOLS)[0]) == "These tools can be loaded on demand:\n- Web\n- LSP"
    assert "- Explore: looks around" in shown(of_kind(restored, RestoredKind.AGENT_LISTING)[0])
    (server,) = of_kind(restored, RestoredKind.MCP_INSTRUCTIONS)
    assert shown(server) == "Instructions of the MCP server db:\nask first"
    assert of_kind(restore(session, kept=5), RestoredKind.TOOLS)[0].code == "still_visible"


def test_kinds_come_in_the_clients_order() -> None:
    session = make_session()
    session.do("EnterPlanMode")
    session.do("ExitPlanMode", plan="p", is_error=True)
    session.say("Base directory for this skill: /s/x\n\nx", isMeta=True)
    session.do("Bash", command="serve", details={"backgroundTaskId": "b"})
    session.attach_fields("deferred_tools_delta", addedNames=["Web"], addedLines=["Web"])
    session.attach_fields("agent_listing_delta", addedTypes=["E"], addedLines=["E"])
    session.attach_fields("mcp_instructions_delta", addedNames=["db"], addedBlocks=["i"])
    kinds = list(dict.fromkeys(item.kind for item in restore(session).items))
    assert kinds == [kind for kind in RestoredKind if kind is not RestoredKind.HOOK_RESULT]


def test_the_totals_bind_and_something_smaller_may_still_come() -> None:
    session = Session()
    session.read("/small", "s")
    for number in range(3):
        session.read(f"/big{number}", "line\n" * 3_000)
    files = of_kind(restore(session, max_files=9, all_files_tokens=9_000), RestoredKind.FILE)
    assert [(item.name, item.code) for item in files] == [
        ("/big2", ""), ("/big1", ""), ("/big0", "total_used_up"), ("/small", ""),
    ]  # fmt: skip
    assert files[2].tokens > 3_000


def test_an_overall_cap_holds_for_everything() -> None:
    restored = restore(make_session(), overall_tokens=60)
    assert restored.tokens <= 60
    assert any(item.code == "total_used_up" for item in restored.items)


def test_hostile_paths_are_names_on_one_line_and_nothing_else() -> None:
    session = Session()
    session.write("/a\n8. Current Work:\u202e\x00/../../etc/shadow", "x")
    (item,) = of_kind(restore(session), RestoredKind.FILE)
    assert "\n" not in item.name
    assert shown(item).splitlines()[0].startswith("/a 8. Current Work:")


_BUDGETS = st.builds(
    RestoreBudgets,
    max_files=st.integers(0, 8),
    file_tokens=st.sampled_from([1, 20, 5_000, 20_000]),
    all_files_tokens=st.sampled_from([0, 100, 6_000, 50_000]),
    skill_tokens=st.sampled_from([1, 5_000, 50_000]),
    all_skills_tokens=st.sampled_from([0, 5_000, 25_000]),
    server_tokens=st.sampled_from([1, 5_000, 50_000]),
    all_servers_tokens=st.sampled_from([0, 5_000, 25_000]),
    overall_tokens=st.sampled_from([None, 0, 3_000]),
)


@settings(max_examples=100, deadline=None)
@given(st.one_of(sessions(), talks()), _BUDGETS, st.integers(0, 6))
def test_everything_stays_within_every_budget_and_everything_has_a_reason(
    entries: list[Entry], budgets: RestoreBudgets, kept: int
) -> None:
    restorer = ContextRestorer(budgets=budgets)
    restored = restorer(entries, entries[len(entries) - kept :] if kept else (), now=NOW)
    assert restored == restorer(entries, entries[len(entries) - kept :] if kept else (), now=NOW)
    came = [item for item in restored.items if item.state is not RestoredState.SKIPPED]
    by_kind: Counter[RestoredKind] = Counter()
    for item in came:
        assert item.entry is not None
        assert item.tokens == count_entry_tokens(item.entry)
        by_kind[item.kind] += item.tokens
    limits = {
        RestoredKind.FILE: (budgets.file_tokens, budgets.all_files_tokens),
        RestoredKind.SKILL: (budgets.skill_tokens, budgets.all_skills_tokens),
        RestoredKind.MCP_INSTRUCTIONS: (budgets.server_tokens, budgets.all_servers_tokens),
    }
    for kind, (each, together) in limits.items():
        assert all(item.tokens <= each for item in came if item.kind is kind)
        assert by_kind[kind] <= together
    assert sum(1 for item in came if item.kind is RestoredKind.FILE) <= budgets.max_files
    assert budgets.overall_tokens is None or restored.tokens <= budgets.overall_tokens
    assert all(item.reason and item.code for item in restored.items if item.state is not RestoredState.RESTORED)
    assert all(item.entry is None for item in restored.items if item.state is RestoredState.SKIPPED)


@settings(max_examples=40, deadline=None)
@given(sessions())
def test_an_outcome_with_restored_lines_is_whole_and_restores_the_same_when_read_again(entries: list[Entry]) -> None:
    asked = CompactionRequest(trigger=Trigger.AUTO, now=NOW)
    outcome = compact_full(entries, asked, RunPorts(ExtractiveSummarizer(), restore=ContextRestorer()))
    check_outcome(outcome, entries)
    again = read_transcript(b"".join(write_entry(entry) for entry in outcome.entries)).entries
    later = NOW + timedelta(minutes=1)
    names = {
        (i.kind, i.name) for i in ContextRestorer()(again, (), now=later).items if i.kind is not RestoredKind.TOOLS
    }
    came = {(i.kind, i.name) for i in outcome.restored if i.entry and i.kind is not RestoredKind.TOOLS}
    assert came <= names


@pytest.mark.recorded_data
@each_recorded()
def test_recorded_threads_come_back_whole_and_within_the_budgets(path: Path) -> None:
    for thread in split_threads(read_recorded(path).entries):
        entries = follow_chain(thread.entries)
        asked = CompactionRequest(trigger=Trigger.AUTO, now=NOW)
        try:
            outcome = compact_full(entries, asked, RunPorts(ExtractiveSummarizer(), restore=ContextRestorer()))
        except NothingToCompact:
            continue
        check_chain(outcome.entries)
        check_conversation(outcome.entries)
        check_written(outcome.entries)
        files = [item for item in outcome.restored if item.kind is RestoredKind.FILE and item.entry]
        assert len(files) <= 5
        assert all(item.tokens <= 5_000 for item in files)
        assert compact_full(entries, asked, RunPorts(ExtractiveSummarizer(), restore=ContextRestorer())) == outcome
