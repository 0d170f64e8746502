"""The summary without a model says how far a turn is that has not ended: findings, named steps, the last request."""

from compaction.compactors.extractive.summarizer import build_extractive_summary
from compaction.compactors.summary.answer import split_sections
from compaction.ports import Variant
from tests.compaction.compactors.sessions import ROOT, Session
from tests.compaction.making import request

FINDINGS = (
    "Good feedback. Let me go through it:\n\n"
    "1. **Lock file race**: valid. `Stat()` and `WriteFile()` leave a gap, `O_EXCL` closes it.\n"
    "2. **No timeouts**: valid. A hanging process keeps the lock for ever, and nobody notices that it does.\n"
    "3. **Payload in the arguments**: valid. Long prompts do not fit there, a temporary file holds them.\n\n"
    "All three are legitimate. Fixing them in this order."
)


def write_sections(session: Session) -> dict[str, str]:
    return split_sections(build_extractive_summary(session.entries), Variant.FULL)


def make_review() -> Session:
    session = Session()
    session.say("Check the review and repair what is valid.")
    session.remark(FINDINGS)
    session.edit(f"{ROOT}/lock.py", "a", "b")
    session.remark("Some more reading first.")
    session.read(f"{ROOT}/spawn.py", "x = 1")
    session.remark("**Fix 2: timeouts for `git diff`**:")
    session.edit(f"{ROOT}/spawn.py", "x = 1", "x = 2")
    session.remark("Now the linter:")
    return session


def test_what_the_agent_found_is_quoted_whole_with_the_steps_named_since() -> None:
    sections = write_sections(make_review())
    current = sections["Current Work"]
    assert "- What the agent found for message 1 at " in current
    assert "> 2. **No timeouts**: valid. A hanging process keeps the lock for ever, and nobody notices" in current
    assert "> All three are legitimate." in current
    assert "Good feedback" not in current
    assert '- Steps that the agent named since, oldest first: "**Fix 2: timeouts for `git diff`**"' in current
    assert "O_EXCL" not in sections["Problem Solving"]


def test_a_turn_that_ended_or_a_later_message_leaves_no_findings_behind() -> None:
    session = make_review()
    session.say("Thank you. What is the weather?")
    session.remark("Reading the forecast.")
    session.run("curl wttr.in", "sunny")
    assert "What the agent found" not in build_extractive_summary(session.entries)
    ended = make_review()
    ended.remark("Everything is repaired, and the linter is content with it.")
    assert "What the agent found" not in build_extractive_summary(ended.entries)


def test_a_short_text_or_one_without_a_list_is_no_finding() -> None:
    session = Session()
    session.say("go")
    session.remark("The cache is stale because nobody clears it. " * 10)
    session.run("ls", "x")
    session.remark("1. one\n2. two\n3. three")
    session.run("ls", "y")
    session.remark("Now the rest:")
    assert "What the agent found" not in build_extractive_summary(session.entries)


def test_a_change_without_a_result_does_not_pass_for_no_change() -> None:
    session = Session()
    session.say("go")
    session.write(f"{ROOT}/a.py", "x = 1")
    session.run("git commit -m 'Add a'", "[main 1a2b3c4] Add a\n 1 file changed")
    assert "- Nothing was changed since that commit." in write_sections(session)["Current Work"]
    session.answer(
        "m-open", request("u-open", "Edit", file_path=f"{ROOT}/a.py", old_string="x = 1", new_string="x = 2")
    )
    current = write_sections(session)["Current Work"]
    assert "Nothing was changed" not in current
    assert "edited a.py (no result yet)" in current


def test_a_command_that_prints_its_status_only_tried_something() -> None:
    session = Session()
    session.say("go")
    session.run('git branch -D nobody; echo "exit: $?"', "error: branch 'nobody' not found\nexit: 1")
    session.remark("So a missing branch is an error of its own, and the callers have to know that.")
    session.run("make load", "x")
    session.remark("Now the callers:")
    assert "Not seen to go through yet" not in write_sections(session)["Optional Next Step"]
    session.run("make deploy", "error: the bucket is gone", is_error=True)
    session.run("ls", "y")
    session.remark("Now the callers:")
    assert 'Not seen to go through yet: "error: the bucket is gone"' in write_sections(session)["Optional Next Step"]
