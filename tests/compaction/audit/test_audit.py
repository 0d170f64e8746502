"""What the audit looks for, how it weighs it, and a percentage that can be worked out by hand."""

from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given, settings

from bench.retained import audit_summary
from compaction.audit.audit import audit_compaction, select_statements
from compaction.audit.passage_search import MatchKind
from compaction.audit.score import FULL_COUNT, WEIGHTS, AuditReport
from compaction.audit.statements import AuditPart, AuditStatement, is_announced_step, split_statements
from compaction.compactors.extractive.summarizer import ExtractiveSummarizer
from compaction.compactors.outcome import Trigger
from compaction.compactors.run import CompactionRequest, RunPorts
from compaction.compactors.selections import compact_full
from compaction.transcripts.entries import Entry
from tests.compaction.compactors.sessions import ROOT, Session, make_session, sessions
from tests.compaction.compactors.talks import NOW


def select(entries: Sequence[Entry], part: AuditPart) -> list[str]:
    return [statement.text for statement in select_statements(entries) if statement.part is part]


def find(statements: Sequence[AuditStatement], text: str) -> AuditStatement:
    return next(statement for statement in statements if text in statement.text)


def test_the_weights_add_up_to_100() -> None:
    assert sum(WEIGHTS.values()) == 100
    assert set(WEIGHTS) == set(AuditPart)


def test_every_statement_cites_an_entry_of_the_stretch() -> None:
    session = make_session()
    statements = select_statements(session.entries)
    assert {statement.entry_uuid for statement in statements} <= {entry.uuid for entry in session.entries}
    assert {statement.part for statement in statements} == {
        AuditPart.REQUIREMENTS, AuditPart.DECISIONS, AuditPart.PROGRESS, AuditPart.ERRORS, AuditPart.REFERENCES,
    }  # fmt: skip


def test_people_bind_the_agent_in_prompts_tickets_plans_and_instructions_to_agents() -> None:
    session = Session()
    session.say("Work on ticket shop-12. Never touch the schema of the orders table.")
    session.run(
        "bd show shop-12", "shop-12: Faster checkout\n- Responses must not exceed 200 ms\n- Owner: the shop team"
    )
    session.do("ExitPlanMode", plan="1. Add an index\n2. Migrations must stay reversible for one release")
    session.do("Task", prompt="Search the cart module. Do not change any file.", description="search")
    session.read(f"{ROOT}/docs/PLAN.md", "# Plan\nThe export must stay below 5 MB")
    session.do("mcp__jira__get_issue", "Totals must be rounded to cents", issue="shop-13")
    session.read(f"{ROOT}/src/pager.py", "# pages must start at one")
    session.run("cat README.md", "You must buy milk and eggs on the way home")
    assert select(session.entries, AuditPart.REQUIREMENTS) == [
        "Work on ticket shop-12.",
        "Never touch the schema of the orders table.",
        "Responses must not exceed 200 ms",
        "Migrations must stay reversible for one release",
        "Do not change any file.",
        "The export must stay below 5 MB",
        "Totals must be rounded to cents",
    ]


def test_pasted_logs_are_no_requirements() -> None:
    session = Session()
    session.say(
        "The nightly import fails, please repair it:\n```\nTraceback\n  must not be here\n```\n"
        "    at import.run (import.js:12)\n2026-05-01T10:00:00 worker must be restarted\n    indented output of a tool"
    )
    assert select(session.entries, AuditPart.REQUIREMENTS) == ["The nightly import fails, please repair it:"]


def test_a_sentence_within_a_line_of_output_is_no_requirement() -> None:
    session = Session()
    session.say(
        "Please repair this test:\n    hooks.go:209: Hook output: Captured state before the prompt of the session\n"
        "        Extracted prompts to: .entire/metadata/test-session-1/full.jsonl"
    )
    assert select(session.entries, AuditPart.REQUIREMENTS) == ["Please repair this test:"]


def test_an_answer_is_looked_for_without_its_question_and_the_clients_frame() -> None:
    session = Session()
    session.say("Add caching to the price service")
    session.do(
        "AskUserQuestion",
        'User has answered your questions: "Which store shall hold cached prices?"="Redis with a lifetime of an hour",'
        ' "Log misses?"="No". You can now continue with the user\'s answers in mind.',
    )
    assert select(session.entries, AuditPart.DECISIONS) == ["Redis with a lifetime of an hour"]
    lost = audit_summary(session.entries, "Prices are cached in Redis with a lifetime of an hour.").lost
    assert [finding.text for finding in lost] == ["Add caching to the price service"]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("yes", "Shall I also move the retry logic into the queue worker?"),
        ("2", "2. Keep the retry logic in the controller"),
        ("option 1", "1. Move the retry logic into the worker"),
        ("ok, and rename the worker to dispatcher as well", "Shall I also move the retry logic into the queue worker?"),
    ],
)
def test_a_short_reply_counts_as_what_it_agrees_to(reply: str, expected: str) -> None:
    session = Session()
    session.say("Clean up the retry logic of the payment controller")
    session.remark(
        "Two ways:\n1. Move the retry logic into the worker\n2. Keep the retry logic in the controller\n\n"
        "Shall I also move the retry logic into the queue worker?"
    )
    session.say(reply)
    assert expected in select(session.entries, AuditPart.DECISIONS)
    assert reply not in ("yes", "2", "option 1") or reply not in select(session.entries, AuditPart.REQUIREMENTS)


def test_errors_are_their_texts_never_exit_codes_and_routine_commands_do_not_count() -> None:
    session = Session()
    session.say("Make the build of the shop module pass")
    session.run("make build", "Exit code 1\nerror[E0502]: cannot borrow `cart` as mutable", is_error=True)
    session.remark("The borrow of `cart` as mutable is held across the loop.")
    session.run("git push origin main", "Everything up-to-date")
    session.run("git add -A", "")
    session.do("Edit", "<tool_use_error>String to replace not found in file.</tool_use_error>", is_error=True)
    assert select(session.entries, AuditPart.ERRORS) == ["error[E0502]: cannot borrow `cart` as mutable"]
    texts = [statement.text for statement in select_statements(session.entries)]
    assert not [text for text in texts if "Exit code" in text or text.startswith("git ")]


def test_lines_that_the_client_cut_are_no_errors() -> None:
    session = Session()
    session.say("go")
    cut = "--- FAIL: TestCart_Swi\n\n... [919 characters truncated] ...\n\nError: half a line of it"
    output = f"Exit code 1\n--- FAIL: TestCart_Empties\n{cut}\nFAIL: shop/cart_test"
    session.run("make test", output, is_error=True)
    assert select(session.entries, AuditPart.ERRORS) == ["--- FAIL: TestCart_Empties", "FAIL: shop/cart_test"]


def test_an_error_that_nobody_takes_up_is_left_out_unless_it_is_among_the_last_steps() -> None:
    session = Session()
    session.say("Speed up the search page")
    session.run("make lint", "error: unused variable `offset` in pager", is_error=True)
    for number in range(6):
        session.run(f"make step{number}", "done")
    assert select(session.entries, AuditPart.ERRORS) == []
    session.run("make test", "error: assertion failed in pager_test", is_error=True)
    assert select(session.entries, AuditPart.ERRORS) == ["error: assertion failed in pager_test"]


def test_background_work_counts_until_its_result_was_read() -> None:
    session = Session()
    session.say("Run the long benchmark in the background")
    session.do(
        "Bash", "Command running in background with ID: b7f2c1",
        details={"backgroundTaskId": "b7f2c1"}, command="make bench", description="benchmark of the search index",
        run_in_background=True,
    )  # fmt: skip
    assert select(session.entries, AuditPart.BACKGROUND) == ["b7f2c1: benchmark of the search index"]
    assert audit_summary(session.entries, "Task b7f2c1 is still running").findings[-1].match.is_found
    session.do("TaskOutput", "42 ms", details={"status": "completed"}, task_id="b7f2c1")
    assert select(session.entries, AuditPart.BACKGROUND) == []


def test_marks_of_bold_text_are_no_part_of_a_statement() -> None:
    assert list(split_statements("1. **Drop it** - rely on length\nRun src/**/*.py and lib/**/*.py")) == [
        "Drop it - rely on length",
        "Run src/**/*.py and lib/**/*.py",
    ]


def test_announcements_are_no_progress() -> None:
    assert all(map(is_announced_step, ("Let me look at it.", "Now I'll fix the test", "Good question!", "Here it is:")))
    assert not any(
        map(is_announced_step, ("Now all 65 tests pass.", "The lock is held too long.", "Good, lint passes."))
    )
    assert list(split_statements("- Fixed the pager.\n\n```py\nx = 1\n```\n| a | b |\n|---|---|\n中文。第二句。")) == [
        "Fixed the pager.", "a | b", "第二句。",
    ]  # fmt: skip


def test_newer_and_more_central_statements_weigh_more() -> None:
    session = Session()
    session.say("Repair `parse_all` in reader.py")
    session.remark("`old_helper` has no callers in this package any more. " + "It was added for an old importer. " * 5)
    for _ in range(8):
        session.edit(f"{ROOT}/reader.py", "a", "b")
        session.remark("`parse_all` skips empty lines again.")
    session.remark("`parse_all` handles nested records, and `lone_name` is deprecated.")
    statements = select_statements(session.entries)
    old, new = find(statements, "old_helper"), find(statements, "skips empty lines")
    assert old.weight < new.weight


def test_the_percentage_is_the_mean_of_the_parts_by_their_weights() -> None:
    session = make_session()
    report = audit_summary(session.entries, "Fix the login bug in auth.py. test_auth.py, login.py")
    assert report.retained is not None
    expected = sum(float(part.retained) * part.weight for part in report.parts) / sum(p.weight for p in report.parts)
    assert report.retained == pytest.approx(Decimal(expected), abs=Decimal("0.05"))
    for part in report.parts:
        findings = [finding for finding in report.findings if finding.part is part.part]
        share = sum(f.weight * f.match.credit for f in findings) / sum(f.weight for f in findings)
        assert float(part.retained) == pytest.approx(100 * share, abs=0.05)
        assert part.weight == WEIGHTS[part.part] * min(len(findings), FULL_COUNT) / FULL_COUNT


def test_what_was_kept_is_not_lost() -> None:
    session = make_session()
    kept = session.entries[-6:]
    report = audit_compaction(session.entries, kept)
    uuids = {entry.uuid for entry in kept}
    assert {f.match.kind for f in report.findings if f.entry_uuid in uuids} == {MatchKind.KEPT}
    assert audit_compaction(session.entries, session.entries).retained == 100


def test_contents_of_restored_files_do_not_count() -> None:
    session = make_session()
    restored = Session(name="restored")
    restored.attach_fields(
        "file", filename=f"{ROOT}/auth.py",
        content={"type": "text", "file": {"filePath": f"{ROOT}/auth.py", "content": "Fix the login bug in auth.py"}},
    )  # fmt: skip
    assert audit_compaction(session.entries, restored.entries).retained == 0


def test_an_outcome_is_audited_with_all_the_model_sees() -> None:
    session = make_session()
    outcome = compact_full(
        session.entries, CompactionRequest(trigger=Trigger.MANUAL, now=NOW), RunPorts(ExtractiveSummarizer())
    )
    report = audit_compaction(session.entries, outcome.entries)
    assert report.retained is not None
    assert report.retained > 80


def test_a_summary_of_another_session_retains_little() -> None:
    other = Session()
    other.say("Write a parser for the config format and document every option")
    other.write("/srv/conf/parser.rs", "fn parse_config() {}")
    other.run("cargo test", "error[E0502]: cannot borrow `x`")
    report = audit_summary(other.entries, "We fixed a login bug.\nThen cargo was mentioned.\n42")
    assert report.retained is not None
    assert report.retained < 15


def test_nothing_to_look_for_has_no_percentage() -> None:
    assert audit_summary([], "anything").retained is None
    assert AuditReport(()).lost == ()


def test_what_was_lost_comes_most_important_first() -> None:
    report = audit_summary(make_session().entries, "")
    assert report.retained == 0
    weights = [finding.weight * WEIGHTS[finding.part] for finding in report.lost]
    assert weights == sorted(weights, reverse=True)


@settings(max_examples=60, deadline=None)
@given(sessions())
def test_the_percentage_is_between_0_and_100_and_the_same_each_time(entries: list[Entry]) -> None:
    text = "login bug, a.py, def work(), one line"
    first, second = audit_summary(entries, text), audit_summary(entries, text)
    assert first == second
    assert first.retained is None or 0 <= first.retained <= 100
    assert len(first.lost) == sum(part.present - part.found for part in first.parts)
