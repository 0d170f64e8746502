"""People's words are told from what the client writes into the same lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.activity.tool_calls import read_activity
from compaction.activity.user_messages import UserMessageKind, read_prompt
from compaction.transcripts.user_lines import strip_machine_text
from tests.compaction.compactors.sessions import Session
from tests.compaction.making import make_entry, say


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("fix it", "fix it"),
        ("<system-reminder>\nbe good\n</system-reminder>\nfix it", "fix it"),
        ("<command-name>/review</command-name>\n<command-args>the diff</command-args>", "/review the diff"),
        (
            "<command-name>/compact</command-name>\n<command-args>keep the tests</command-args>",
            "/compact keep the tests",
        ),
        ("<command-name>/compact</command-name>\n<command-args></command-args>", None),
        ("<local-command-stdout>Compacted</local-command-stdout>", None),
        ("<bash-input>ls</bash-input>", "! ls"),
        ("<task-notification><task-id>a1</task-id></task-notification>", None),
        ("[Request interrupted by user]", None),
        ("compare <system-reminder-like> tags", "compare <system-reminder-like> tags"),
        ("an open <system-reminder> stays", "an open <system-reminder> stays"),
        ([{"type": "tool_result", "tool_use_id": "t", "content": "output"}], None),
    ],
)
def test_only_what_a_person_typed_is_heard(content: object, words: str | None) -> None:
    heard = read_prompt(say(content))
    assert (heard[0] if heard else None) == words


def test_meta_lines_summaries_and_lines_of_other_origin_are_not_a_persons() -> None:
    assert read_prompt(say("hello", isMeta=True)) is None
    assert read_prompt(say("hello", isCompactSummary=True)) is None
    assert read_prompt(say("hello", origin={"kind": "task-notification"})) is None
    assert read_prompt(say("hello", origin={"kind": "human"})) == ("hello", UserMessageKind.PROMPT)


def test_a_prompt_typed_while_the_agent_worked_is_heard() -> None:
    queued = make_entry("attachment", attachment={"type": "queued_command", "prompt": "use pnpm"})
    notice = {"type": "queued_command", "prompt": "done", "commandMode": "task-notification"}
    assert read_prompt(queued) == ("use pnpm", UserMessageKind.QUEUED)
    assert read_prompt(make_entry("attachment", attachment=notice)) is None


def test_answers_and_reasons_for_refusals_are_a_persons_words_too() -> None:
    session = Session()
    session.do("AskUserQuestion", 'User has answered: "Which?"="The second"', questions=[])
    session.do("Edit", "The tool use was rejected. To tell you how, the user said:\nkeep the old name", is_error=True)
    said = read_activity(session.entries).user_messages
    assert [(words.kind, words.text) for words in said] == [
        (UserMessageKind.ANSWER, 'User has answered: "Which?"="The second"'),
        (UserMessageKind.REASON, "keep the old name"),
    ]


@given(
    st.lists(st.sampled_from(["<system-reminder>", "</system-reminder>", "<task-notification x='1'>", "word ", "\n"]))
)
def test_stripping_never_adds_anything_and_is_done_after_one_pass_of_each_tag(parts: list[str]) -> None:
    text = "".join(parts)
    stripped = strip_machine_text(text)
    assert len(stripped) <= len(text)
    assert "".join(stripped.split()) in "".join(text.split()) or "<" in text
