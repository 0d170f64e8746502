"""The summary without a model: nine sections, the user's words whole, the same for the same input, within its cap."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.retained import audit_summary
from bench.threads import split_threads
from compaction.activity.tool_calls import read_activity
from compaction.compactors.extractive.files import MOST_FILES, list_file_items
from compaction.compactors.extractive.material import read_material
from compaction.compactors.extractive.sections import (
    CutRank,
    SummaryItem,
    build_sections,
    count_summary_tokens,
    quote,
)
from compaction.compactors.extractive.summarizer import (
    LABEL,
    ExtractiveSummarizer,
    build_extractive_summary,
)
from compaction.compactors.outcome import Trigger
from compaction.compactors.run import CompactionRequest, RunPorts
from compaction.compactors.selections import compact_full, compact_up_to
from compaction.compactors.summary.answer import list_missing_sections, split_sections
from compaction.compactors.summary.prompt import SECTIONS, Section, list_sections
from compaction.context.margins import MAX_SUMMARY_TOKENS
from compaction.errors import CompactionCancelled
from compaction.ports import Stage, SummaryRequest, SummaryRoute, Variant
from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import Entry, TextBlock, ToolResultBlock, ToolUseBlock
from tests.compaction.compactors.checks import check_outcome
from tests.compaction.compactors.sessions import ROOT, Session, make_session, sessions
from tests.compaction.compactors.summarizers import Watcher
from tests.compaction.compactors.talks import NOW, talks
from tests.compaction.making import request
from tests.compaction.recorded import each_recorded, read_recorded


def sections_of(entries: list[Entry]) -> dict[str, str]:
    return split_sections(build_extractive_summary(entries), Variant.FULL)


def test_a_working_session_is_told_in_all_nine_sections() -> None:
    sections = sections_of(make_session().entries)
    assert list(sections) == list(SECTIONS)
    assert LABEL in sections["Primary Request and Intent"]
    assert (
        '"Never touch the schema, and always run `make test` before you commit."'
        in sections["Primary Request and Intent"]
    )
    assert "branch main" in sections["Key Technical Concepts"]
    files = sections["Files and Code Sections"]
    assert "**auth.py**: edited 2 times, read" in files
    assert "NOT committed since its last change" in files
    assert "**login.py**: edited, last at 11:30; committed in 1a2b3c4" in files
    assert "  |     return token.user if" in files
    errors = sections["Errors and Fixes"]
    assert "> E   AttributeError: 'NoneType' object has no attribute 'user'" in errors
    assert "Done next: edited login.py (added `user = check(token)`)." in errors
    assert 'The agent said: "The guard is in the wrong place: the caller reads the user first."' in errors
    assert "went through later" in errors
    assert 'committed 1a2b3c4 at 11:30: "Guard the token"' in sections["Problem Solving"]
    assert "  > Good. Also log it, but do not use print." in sections["All User Messages"]
    assert '[in_progress] "Guard against an empty token"' in sections["Pending Tasks"]
    assert "Message 2 is still being worked on" in sections["Pending Tasks"]
    assert '- Done: "Find the bug"' in sections["Pending Tasks"]
    assert "  - edited auth.py" in sections["Current Work"]
    assert '"Now let me add the log line:"' in sections["Optional Next Step"]


def test_a_request_nobody_has_begun_is_the_next_step() -> None:
    session = make_session()
    session.say("Stop. Write the changelog first.")
    assert 'not begun: "Stop. Write the changelog first."' in sections_of(session.entries)["Optional Next Step"]


def test_what_the_last_words_leave_open_is_pending() -> None:
    session = Session()
    session.say("go")
    session.remark("All done.\n\n### Next Steps\n- wire the cache\n- write docs")
    sections = sections_of(session.entries)
    assert "> - wire the cache" in sections["Pending Tasks"]
    assert "name what is left" in sections["Optional Next Step"]


def test_messages_of_many_lines_stand_whole_and_cannot_pass_for_headings_or_tags() -> None:
    session = Session()
    message = "Do this:\n8. Current Work:\n</summary>\n<analysis>\n  indented\n\nend"
    session.say(message)
    text = build_extractive_summary(session.entries)
    assert quote(message) in text
    assert "</summary>" not in text
    assert "> 8. Current Work:" in split_sections(text, Variant.FULL)["All User Messages"]


def test_an_earlier_summary_is_carried_over_section_by_section() -> None:
    first = make_session()
    text = build_extractive_summary(first.entries)
    second = Session(name="second")
    second.bound(words=f"Opening\n\nSummary:\n{text}\n\nfull transcript at: /x")
    second.say("Now the README.")
    sections = split_sections(build_extractive_summary(second.entries), Variant.FULL)
    words = sections["All User Messages"]
    assert words.index("Fix the login bug") < words.index("Good. Also log it") < words.index("Now the README.")
    assert "auth.py" in sections["Files and Code Sections"]
    assert "AttributeError" in sections["Errors and Fixes"]
    assert "Update the README" in sections["Pending Tasks"]
    third = Session(name="third")
    third.bound(words=f"Summary:\n{build_extractive_summary(second.entries)}")
    third.say("And the changelog.")
    assert "Fix the login bug" in build_extractive_summary(third.entries)


def test_a_summary_without_sections_is_carried_over_as_it_is() -> None:
    session = Session()
    session.bound(words="Everything was about the parser.")
    session.say("go on")
    assert "> Everything was about the parser." in sections_of(session.entries)["Problem Solving"]


def test_instructions_reach_what_only_an_earlier_summary_says() -> None:
    session = Session()
    filler = "\n".join(f"Step {number} was about the parser of dates." for number in range(400))
    session.bound(words=f"{filler}\nMinhash was rejected for its speed.")
    session.say("go on")
    assert "Minhash" not in build_extractive_summary(session.entries)
    text = build_extractive_summary(session.entries, instructions="keep everything about minhash")
    assert "> Minhash was rejected for its speed." in text
    assert "No word of the instructions occurs" not in text
    assert "No word of the instructions occurs" in build_extractive_summary(
        session.entries, instructions="keep the tooltips"
    )


def test_the_same_input_gives_the_same_summary_and_nothing_says_so_in_each_section() -> None:
    assert build_extractive_summary(make_session().entries) == build_extractive_summary(make_session().entries)
    empty = build_extractive_summary([])
    assert list_missing_sections(empty, Variant.FULL) == ()
    assert empty.count("- Nothing to report.") == 8


def test_cuts_go_by_rank_oldest_first_and_leave_marks() -> None:
    items = [
        SummaryItem(Section.FILES, "note " * 40, CutRank.FILE_NOTE, 1, "- path [note cut]"),
        SummaryItem(Section.FILES, "new code " * 60, CutRank.SNIPPET, 0),
        SummaryItem(Section.FILES, "old code " * 60, CutRank.SNIPPET, 1),
        SummaryItem(Section.PROBLEM_SOLVING, "step " * 100, CutRank.STATEMENT, 0),
        SummaryItem(Section.MESSAGES, "first words " * 50, CutRank.USER_MESSAGE, 1, "first words [cut: much]"),
        SummaryItem(Section.MESSAGES, "last words " * 50, CutRank.USER_MESSAGE, 0, "last words [cut: much]"),
    ]  # fmt: skip
    whole = build_sections(items, SECTIONS, cap_tokens=5_000, aim_tokens=5_000)
    assert "[cut" not in whole
    sizes = [count_summary_tokens(whole) - gone for gone in (60, 240, 400, 500, 700)]
    texts = [build_sections(items, SECTIONS, cap_tokens=size, aim_tokens=size) for size in sizes]
    assert all(count_summary_tokens(text) <= size for text, size in zip(texts, sizes, strict=True))
    assert "new code" in texts[0]
    assert "old code" not in texts[0]
    assert "[cut to stay within the limit: 1 code snippets]" in texts[0]
    assert "new code" not in texts[1]
    assert "[note cut]" in texts[2]
    assert "step step" not in texts[3]
    assert "first words [cut: much]" in texts[4]
    assert "last words last words" in texts[4]


@pytest.mark.parametrize("changed", [0, 6, 240, 260])
def test_at_most_so_many_files_are_listed_and_a_note_counts_the_others(changed: int) -> None:
    session = Session()
    session.say("Look at all of it.")
    for number in range(500):
        session.read(f"/src/read_{number}.py", "x")
    for number in range(changed):
        session.write(f"/src/written_{number}.py", "y = 1\n")
    items = list_file_items(read_material(session.entries))
    listed = set(re.findall(r"(?:read|written)_\d+", " ".join(item.text for item in items)))
    assert len(listed) == MOST_FILES
    assert sum("written" in name for name in listed) == min(changed, MOST_FILES)
    assert items[-1].text == f"[cut: {500 + changed - MOST_FILES} more files, not touched lately]"


def test_a_mark_counts_the_files_that_were_cut() -> None:
    session = Session()
    session.say("Look at all of it.")
    for number in range(100):
        session.read(f"/src/read_{number}.py", "x")
    items = list_file_items(read_material(session.entries))
    whole = build_sections(items, SECTIONS, cap_tokens=5_000, aim_tokens=5_000)
    assert len(re.findall(r"read_\d+", whole)) == 100
    size = count_summary_tokens(whole) // 2
    text = build_sections(items, SECTIONS, cap_tokens=size, aim_tokens=size)
    left = len(re.findall(r"read_\d+", text))
    assert 0 < left < 100
    assert f"[cut to stay within the limit: {100 - left} files that were only read]" in text


def test_the_users_words_outlast_everything_else_that_can_be_cut() -> None:
    session = make_session()
    for number in range(40):
        session.say(f"Message {number}: " + f"please mind case {number} and its neighbours. " * 30)
        session.write(f"{ROOT}/gen/file{number}.py", f"def work_{number}():\n    return {number}\n" * 20)
        session.run(f"make check-{number}", f"error: case {number} is broken")
    text = build_extractive_summary(session.entries)
    sections = split_sections(text, Variant.FULL)
    assert count_summary_tokens(text) <= MAX_SUMMARY_TOKENS
    assert "Message 39: please mind case 39" in sections["All User Messages"]
    assert quote(session.entries[-5].message.content[0].text) in sections["All User Messages"]  # type: ignore[union-attr]


def test_a_short_session_is_not_told_at_greater_length_than_it_has() -> None:
    session = Session()
    session.say("write five files")
    for number in range(5):
        session.write(
            f"{ROOT}/f{number}.py", "\n".join(f"def f{number}_{line}(): return {'x' * 40}" for line in range(28))
        )
    text = build_extractive_summary(session.entries)
    assert "code snippets]" in text
    assert count_summary_tokens(text) <= 1_900


def test_the_summarizer_answers_as_a_model_would_and_is_labelled() -> None:
    entries = tuple(make_session().entries)
    asked = SummaryRequest(variant=Variant.FULL, route=SummaryRoute.PLAIN, entries=entries, prompt="", body={})
    answer = ExtractiveSummarizer().summarize(asked, Watcher())
    assert (answer.stop_reason, answer.label, answer.usage.prompt_tokens) == ("end_turn", LABEL, 0)
    with pytest.raises(CompactionCancelled):
        ExtractiveSummarizer().summarize(asked, Watcher(cancel_at=Stage.DONE, stages=[Stage.DONE]))


def test_full_and_partial_compaction_run_with_it() -> None:
    session = make_session()
    asked = CompactionRequest(trigger=Trigger.AUTO, now=NOW)
    outcome = compact_full(session.entries, asked, RunPorts(ExtractiveSummarizer()))
    check_outcome(outcome, session.entries)
    assert not outcome.summary.missing_sections
    assert f"Summary: ({LABEL})" in outcome.summary_entry.message.content[0].text  # type: ignore[union-attr]
    pivot = session.entries[-5].uuid or ""
    partial = compact_up_to(session.entries, pivot, asked, RunPorts(ExtractiveSummarizer()))
    check_outcome(partial, session.entries)
    assert not partial.summary.missing_sections


@settings(max_examples=80, deadline=None)
@given(st.one_of(sessions(), talks()), st.sampled_from([400, 1_500, 20_000]), st.sampled_from(list(Variant)))
def test_every_conversation_gives_nine_sections_within_the_cap(
    entries: list[Entry], cap: int, variant: Variant
) -> None:
    text = build_extractive_summary(entries, variant, cap_tokens=cap)
    assert count_summary_tokens(text) <= cap
    assert text == build_extractive_summary(entries, variant, cap_tokens=cap)
    if cap == MAX_SUMMARY_TOKENS:
        assert list_missing_sections(text, variant) == ()
        assert list(split_sections(text, variant)) == list(list_sections(variant))


def test_an_open_request_has_no_result_yet() -> None:
    session = make_session()
    session.answer("m-open", request("u-open", "Bash", command="make deploy"))
    assert "ran `make deploy` (no result yet)" in sections_of(session.entries)["Current Work"]


@pytest.mark.recorded_data
@each_recorded()
def test_recorded_threads_retain_most_and_stay_within_the_cap(path: FilePath) -> None:
    for thread in split_threads(read_recorded(path).entries):
        entries = slice_context(follow_chain(thread.entries)).entries
        text = build_extractive_summary(entries)
        report = audit_summary(entries, text)
        assert count_summary_tokens(text) <= MAX_SUMMARY_TOKENS
        assert list_missing_sections(text, Variant.FULL) == ()
        assert report.retained is None or report.retained >= 55


_OWN_MARKS = re.compile(r"\[cut: [^\]]*\]|\[\.\.\.\]|\[code: \d+ lines\]|\[what is left: section 7\]")


def list_quoted(text: str) -> Iterator[str]:
    """The quoted lines of a summary, in pieces between our own marks, without markup."""
    for line in text.splitlines():
        if (marked := re.match(r"\s*(?:- )?[>|] ?(.*)$", line)) and "From the summary" not in line:
            yield from (plain for part in _OWN_MARKS.split(marked[1]) if (plain := flatten_words(part)))
        elif spoken := re.match(r'- (?:\d\d:\d\d )?(?:report: |agent ".*?" reported: )?"(.*)"$', line):
            yield from (plain for part in spoken[1].split(" […] ") if (plain := flatten_words(part)))


def flatten_words(text: str) -> str:
    """Letters and digits alone: quoting drops emphasis, bullets and line breaks."""
    return "".join(character for character in text if character.isalnum())


def list_texts(entries: Sequence[Entry]) -> Iterator[str]:
    """Everything that the entries say, as text."""
    for entry in entries:
        for block in entry.message.content if entry.message else ():
            if isinstance(block, TextBlock):
                yield block.text
            elif isinstance(block, ToolUseBlock):
                yield from (value for value in list_strings(block.input))
            elif isinstance(block, ToolResultBlock):
                yield block.text.replace("\\n", "\n")


def list_strings(value: object) -> Iterator[str]:
    """Every text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from list_strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from list_strings(each)


def assert_quoted_lines_occur(entries: Sequence[Entry], text: str) -> None:
    # Commands are put together from their tags.
    said = [message.text for message in read_activity(entries).user_messages]
    source = flatten_words("\n".join([*list_texts(entries), *said]))
    missing = [part for part in list_quoted(text) if part not in source]
    assert missing == []


@settings(max_examples=60, deadline=None)
@given(st.one_of(sessions(), talks()))
def test_every_quoted_line_occurs_in_the_conversation(entries: list[Entry]) -> None:
    visible = [entry for entry in entries if not entry.is_compact_summary]
    assert_quoted_lines_occur(visible, build_extractive_summary(visible))


@pytest.mark.recorded_data
@each_recorded()
def test_every_quoted_line_occurs_in_the_recorded_thread(path: FilePath) -> None:
    for thread in split_threads(read_recorded(path).entries):
        entries = slice_context(follow_chain(thread.entries)).entries
        if not any(entry.is_compact_summary or entry.type == "attachment" for entry in entries):
            assert_quoted_lines_occur(entries, build_extractive_summary(entries))


def test_background_jobs_say_what_to_do_about_them() -> None:
    session = make_session()
    session.remark("The load test takes an hour, so it runs in the background.")
    session.do(
        "Bash", "Command running in background with ID: bg7", details={"backgroundTaskId": "bg7"},
        command="make load", description="Load test", run_in_background=True,
    )  # fmt: skip
    sections = sections_of(session.entries)
    for name in ("Pending Tasks", "Current Work"):
        assert 'Background job bg7 ("Load test"): running. Do not start it again' in sections[name]
    assert "Said when it was started: " in sections["Pending Tasks"]
    session.do("TaskOutput", "finished", details={"task": {"status": "completed"}}, task_id="bg7")
    session.remark("The load test went well.")
    assert "Background job" not in build_extractive_summary(session.entries)


def test_finished_todos_are_never_listed_as_open() -> None:
    session = make_session()
    session.do("TodoWrite", todos=[{"content": "Guard against an empty token", "status": "completed"}])
    pending = sections_of(session.entries)["Pending Tasks"]
    assert "[in_progress]" not in pending
    assert '- Done: "Guard against an empty token"' in pending


def test_closed_tickets_are_left_out_of_what_the_last_words_leave() -> None:
    session = Session()
    session.say("do shop-1 and shop-2")
    session.run("bd close shop-1", "✓ Closed shop-1")
    session.remark("Done so far.\n\n### Next Steps\n- shop-1: add a cart\n- shop-2: empty a cart")
    pending = sections_of(session.entries)["Pending Tasks"]
    assert "> - shop-2: empty a cart" in pending
    assert "> - shop-1" not in pending


def test_error_texts_come_instead_of_exit_codes() -> None:
    session = Session()
    session.say("go")
    session.run("make deploy", "Exit code 2\nsomething odd: the bucket is gone", is_error=True)
    errors = sections_of(session.entries)["Errors and Fixes"]
    assert "> something odd: the bucket is gone" in errors
    assert "> Exit code" not in errors
    assert "failed with exit code 2" in errors


def test_chinese_prompts_come_whole_and_their_constraints_are_found() -> None:
    session = Session()
    session.say("请修复登录错误。不要修改数据库结构！提交前必须运行测试。")  # noqa: RUF001
    session.remark("好的。测试失败是因为 `token` 为空。让我看看。")
    session.edit(f"{ROOT}/auth.py", "a", "b")
    session.remark("还剩一步。")
    text = build_extractive_summary(session.entries)
    sections = split_sections(text, Variant.FULL)
    assert "> 请修复登录错误。不要修改数据库结构！提交前必须运行测试。" in sections["All User Messages"]  # noqa: RUF001
    assert '  - "不要修改数据库结构！"' in sections["Primary Request and Intent"]  # noqa: RUF001
    assert '  - "提交前必须运行测试。"' in sections["Primary Request and Intent"]
    assert '"测试失败是因为 `token` 为空。"' in sections["Problem Solving"]
    assert "让我看看" not in text
    assert "\ufffd" not in text


def test_instructions_give_priority_to_what_they_name_and_the_summary_says_so() -> None:
    session = make_session()
    session.remark("The walrus is asleep.")
    session.write(f"{ROOT}/walrus.py", "\n".join(f"def walrus_{number}(): ..." for number in range(60)))
    for number in range(40):
        session.write(f"{ROOT}/f{number}.py", "\n".join(f"def f{number}_{line}(): ..." for line in range(40)))
    session.remark("Now the rest:")
    plain = build_extractive_summary(session.entries)
    named = build_extractive_summary(
        session.entries, instructions="Keep everything about the walrus. Ignore the README."
    )
    assert "The walrus is asleep." not in plain
    assert '"The walrus is asleep."' in split_sections(named, Variant.FULL)["Problem Solving"]
    assert 'Words of the instructions that were given priority: "walrus". Other wishes need a model.' in named
    files = split_sections(named, Variant.FULL)["Files and Code Sections"]
    assert files.index("**walrus.py**") < files.index("**f39.py**")
    assert "def walrus_20(): ..." in files
    assert "def walrus_20(): ..." not in plain


def test_instructions_whose_words_do_not_occur_are_named_as_without_effect() -> None:
    text = build_extractive_summary(make_session().entries, instructions="Focus on kubernetes")
    assert "[No word of the instructions occurs in this conversation, so they changed nothing here.]" in text


def test_instructions_reach_the_summarizer_through_a_compaction() -> None:
    asked = CompactionRequest(trigger=Trigger.MANUAL, now=NOW, custom_instructions="Keep the token guard")
    outcome = compact_full(make_session().entries, asked, RunPorts(ExtractiveSummarizer()))
    assert 'given priority: "token", "guard"' in outcome.summary.text


def test_plans_and_documents_that_the_user_named_give_constraints() -> None:
    session = Session()
    session.say("Read docs/rules.md and follow it.")
    session.read(f"{ROOT}/docs/rules.md", "# Rules\n\n- Prices must be integers.\n- Have fun.")
    session.read(f"{ROOT}/notes.md", "- Nobody must read this.")
    session.do("ExitPlanMode", "approved", plan="1. Add a cart\n2. Carts must expire")
    request_section = sections_of(session.entries)["Primary Request and Intent"]
    assert "- Constraints in " in request_section
    assert '  - "Prices must be integers."' in request_section
    assert "Nobody must read this" not in request_section
    assert "- The plan (plan mode):\n  > 1. Add a cart\n  > 2. Carts must expire" in request_section
