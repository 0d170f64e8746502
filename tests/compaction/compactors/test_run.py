"""Full compaction: stages, hooks, chaining, what every bad summariser leads to, and what the log is told."""

import pytest
from msgspec.structs import replace

from compaction.compactors.outcome import (
    CompactorKind,
    EntryFate,
    RecompactionInfo,
    Trigger,
)
from compaction.compactors.restore.items import RestoredContext, RestoredItem, RestoredKind, RestoredState
from compaction.compactors.run import CompactionRequest, RunPorts
from compaction.compactors.selections import compact_full
from compaction.compactors.summary.fork_request import ParentRequest
from compaction.compactors.summary.plain_request import SummaryModels
from compaction.compactors.summary.prompt import SECTIONS
from compaction.context.tokens import measure_context
from compaction.errors import (
    BlockedByHook,
    CompactionCancelled,
    ConversationTooLong,
    EmptySummary,
    NothingToCompact,
    PromptTooLong,
    RunError,
    SummarizerUnavailable,
    SummaryCalledTools,
    SummaryCutShort,
    SummaryIsApiError,
    SummaryRefused,
    SummaryUnfinished,
    SummaryWithoutSections,
)
from compaction.events import CompactionCompleted, CompactionFailed, SummaryAnswered, ThresholdExceeded
from compaction.ports import (
    KEEP_ALIVE_SECONDS,
    HookResult,
    PreCompactAnswer,
    PreCompactCall,
    Stage,
    SummaryRoute,
    Variant,
)
from compaction.transcripts.entries import Entry, TextBlock
from compaction.transcripts.payloads import Attachment, Boundary
from compaction.transcripts.transcript import read_transcript
from compaction.transcripts.writer import write_entry
from tests.compaction.compactors.checks import check_chain, check_outcome, read_context
from tests.compaction.compactors.summarizers import Script, ToldHooks, Watcher, say, summarise_well, write_sections
from tests.compaction.compactors.talks import NOW, Talk, make_talk
from tests.compaction.making import text

REQUEST = CompactionRequest(trigger=Trigger.AUTO, now=NOW)
PARENT = ParentRequest(
    {
        "model": "claude-opus-4-5",
        "max_tokens": 32_000,
        "system": [{"type": "text", "text": "You are an agent."}],
        "tools": [{"name": "Read"}],
        "messages": [{"role": "user", "content": "Fix the login bug, and never touch the schema."}],
    },
    response_id="m0",
)


def read_summary(entry: Entry) -> str:
    assert entry.message is not None
    block = entry.message.content[0]
    assert isinstance(block, TextBlock)
    return block.text


def test_stages_come_in_order_and_end_in_done() -> None:
    watcher = Watcher()
    compact_full(make_talk(), REQUEST, RunPorts(Script(), monitor=watcher))
    assert watcher.stages == [
        Stage.PRE_HOOKS,
        Stage.PREPARING,
        Stage.SUMMARISING,
        Stage.VALIDATING,
        Stage.RESTORING,
        Stage.POST_HOOKS,
        Stage.DONE,
    ]


def test_signs_of_life_reach_the_monitor_while_a_summary_is_written() -> None:
    watcher = Watcher()
    compact_full(make_talk(), REQUEST, RunPorts(Script([PromptTooLong(), summarise_well]), monitor=watcher))
    assert watcher.signs_of_life == [0, 0]
    assert KEEP_ALIVE_SECONDS == 30


def test_summary_replaces_everything_and_the_analysis_is_kept_apart() -> None:
    entries = make_talk()
    outcome = compact_full(entries, REQUEST, RunPorts(Script()))
    check_outcome(outcome, entries)
    assert outcome.kind is CompactorKind.FULL
    assert outcome.entries == (outcome.boundary, outcome.summary_entry)
    assert outcome.summary.analysis == "first\n\nthen"
    assert "first" not in read_summary(outcome.summary_entry)
    assert not outcome.summary.missing_sections
    assert outcome.list_uuids(EntryFate.SUMMARISED) == tuple(entry.uuid for entry in entries)


def test_boundary_carries_the_metadata_of_the_client_and_can_be_read_back() -> None:
    entries = make_talk()
    request = CompactionRequest(trigger=Trigger.MANUAL, now=NOW, custom_instructions="mind the tests")
    outcome = compact_full(entries, request, RunPorts(Script()))
    read = read_transcript(write_entry(outcome.boundary)).entries[0]
    assert read.parent_uuid is None
    assert read.logical_parent_uuid == entries[-1].uuid
    assert read.fields["content"] == "Conversation compacted"
    assert read.session_id == "s-1"
    assert read.at == NOW
    boundary = read.payload
    assert isinstance(boundary, Boundary)
    assert boundary.trigger == "manual"
    assert boundary.pre_tokens == outcome.pre_tokens == measure_context(entries).tokens
    assert boundary.post_tokens == outcome.replaced_tokens
    assert boundary.duration_seconds == 2.0
    assert boundary.messages_summarized == len(entries)
    assert boundary.preserved_segment is None
    assert boundary.user_context == "mind the tests"
    assert boundary.cumulative_dropped_tokens == outcome.pre_tokens - outcome.replaced_tokens


def test_dropped_tokens_add_up_and_discovered_tools_are_handed_on() -> None:
    talk = Talk()
    talk.say("hello")
    talk.bound(cumulativeDroppedTokens=90_000, preCompactDiscoveredTools=["Monitor"])
    talk.say("look for a tool")
    reference = {"type": "tool_reference", "tool_name": "Notebook"}
    talk.use_tool("m1", "search", [reference], name="ToolSearch")
    outcome = compact_full(talk.entries, REQUEST, RunPorts(Script()))
    boundary = outcome.boundary.payload
    assert isinstance(boundary, Boundary)
    assert boundary.discovered_tools == ("Monitor", "Notebook")
    dropped = max(0, outcome.pre_tokens - outcome.replaced_tokens)
    assert boundary.cumulative_dropped_tokens == 90_000 + dropped


def test_previous_summary_is_summarised_again_and_older_messages_are_not_sent() -> None:
    talk = Talk()
    talk.say("long ago")
    talk.bound("1. Primary Request and Intent: the first chapter")
    talk.say("go on")
    script = Script()
    compact_full(talk.entries, REQUEST, RunPorts(script))
    sent = str(script.requests[0].body["messages"])
    assert "the first chapter" in sent
    assert "go on" in sent
    assert "long ago" not in sent


def test_what_an_earlier_compaction_preserved_is_summarised_with_the_rest() -> None:
    talk = Talk()
    talk.say("long ago")
    kept = talk.say("kept word for word")
    talk.bound(preservedSegment={"headUuid": kept.uuid, "tailUuid": kept.uuid, "anchorUuid": "t-0003"})
    talk.say("go on")
    script = Script()
    compact_full(talk.entries, REQUEST, RunPorts(script))
    assert kept in script.requests[0].entries
    assert talk.entries[0] not in script.requests[0].entries


@pytest.mark.parametrize(
    ("trigger", "said", "unsaid"),
    [
        (Trigger.MANUAL, "Summary:", "Take the work up"),
        (Trigger.AUTO, "Take the work up", "work loop"),
        (Trigger.AUTONOMOUS, "work loop", "nobody says this"),
    ],
)
def test_summary_message_tells_how_to_go_on_by_trigger(trigger: Trigger, said: str, unsaid: str) -> None:
    request = CompactionRequest(trigger=trigger, now=NOW, transcript_path="/home/dev/.agent/s-1.jsonl")
    words = read_summary(compact_full(make_talk(), request, RunPorts(Script())).summary_entry)
    assert said in words
    assert unsaid not in words
    assert "Summary:\n1. Primary Request" in words
    assert "/home/dev/.agent/s-1.jsonl" in words


def test_hooks_are_told_add_instructions_behind_the_users_and_leave_results() -> None:
    answers = [PreCompactAnswer(instructions="hook words", display_message="Saving notes"), PreCompactAnswer()]
    hooks = ToldHooks(answers, [HookResult("reload", "Rules: be brief."), HookResult("mute", " ")])
    script = Script()
    request = CompactionRequest(trigger=Trigger.AUTONOMOUS, now=NOW, custom_instructions="user words")
    outcome = compact_full(make_talk(), request, RunPorts(script, hooks=hooks))
    assert hooks.calls[0] == PreCompactCall("auto", "user words", "s-1")
    assert "Additional Instructions:\nuser words\n\nhook words" in script.requests[0].prompt
    assert outcome.display_messages == ("Saving notes",)
    assert outcome.entries[-1].payload == Attachment("hook_additional_context", ("Rules: be brief.",), "user")
    assert [(item.kind, item.state) for item in outcome.restored] == [
        (RestoredKind.HOOK_RESULT, RestoredState.RESTORED),
        (RestoredKind.HOOK_RESULT, RestoredState.SKIPPED),
    ]


def test_a_blocking_hook_stops_the_run_before_any_model_is_asked() -> None:
    hooks, watcher, script = (
        ToldHooks([PreCompactAnswer(is_blocking=True, block_reason="deploy running.")]),
        Watcher(),
        Script(),
    )
    with pytest.raises(BlockedByHook, match=r"blocked the compaction: deploy running\.$"):
        compact_full(make_talk(), REQUEST, RunPorts(script, hooks=hooks, monitor=watcher))
    assert script.requests == []
    assert watcher.stages[-1] is Stage.FAILED


@pytest.mark.parametrize("entries", [[], Talk().entries])
def test_an_empty_conversation_is_refused(entries: list[Entry]) -> None:
    with pytest.raises(NothingToCompact, match="empty"):
        compact_full(entries, REQUEST, RunPorts(Script()))


def test_a_compaction_by_hand_with_only_its_own_command_lines_behind_it_leaves_nothing_to_compact() -> None:
    talk = Talk()
    talk.say("hello")
    talk.bound()
    talk.say("Caveat: these messages were made by local commands.", isMeta=True)
    talk.say("<command-name>/compact</command-name>")
    talk.say("<local-command-stdout>Compacted</local-command-stdout>")
    with pytest.raises(NothingToCompact, match="There are no new messages"):
        compact_full(talk.entries, REQUEST, RunPorts(Script()))


BAD_ANSWERS = [
    (say(""), EmptySummary, "no_summary"),
    (say("<summary> \n </summary>"), EmptySummary, "no_summary"),
    (say("API Error: 529 overloaded"), SummaryIsApiError, "api_error"),
    (say("text", "max_tokens"), SummaryCutShort, "max_tokens"),
    (say("text", "model_context_window_exceeded"), SummaryCutShort, "max_tokens"),
    (say("", "refusal"), SummaryRefused, "refusal"),
    (say("Let me look.", "tool_use"), SummaryCalledTools, "tool_use"),
    (say("text", None), SummaryUnfinished, "no_stop_reason"),
    (say("text", "stop_sequence"), SummaryUnfinished, "no_stop_reason"),
    (say("text", "compaction"), SummaryUnfinished, "no_stop_reason"),
    (say("We fixed a bug."), SummaryWithoutSections, "no_summary"),
    (SummarizerUnavailable("overloaded"), SummarizerUnavailable, "api_error"),
    (ConnectionResetError("peer went away"), SummarizerUnavailable, "api_error"),
    (PromptTooLong(), ConversationTooLong, "prompt_too_long"),
]


@pytest.mark.parametrize(("step", "error", "reason"), BAD_ANSWERS)
def test_every_bad_summariser_ends_in_failed_with_a_named_error(
    step: object, error: type[RunError], reason: str
) -> None:
    watcher, entries = Watcher(), make_talk()
    with pytest.raises(error) as caught:
        compact_full(entries, REQUEST, RunPorts(Script([step]), monitor=watcher))  # type: ignore[list-item]
    assert str(caught.value).endswith(".")
    assert watcher.stages[-1] is Stage.FAILED
    pre_tokens = measure_context(entries).tokens
    assert watcher.events[-1] == CompactionFailed(
        session_id="s-1", kind="full", trigger="auto", reason=reason, pre_tokens=pre_tokens
    )
    assert entries == make_talk()


def test_an_error_nobody_named_still_ends_in_failed() -> None:
    watcher = Watcher()
    with pytest.raises(ZeroDivisionError):
        compact_full(make_talk(), REQUEST, RunPorts(Script([ZeroDivisionError()]), monitor=watcher))
    assert watcher.stages[-1] is Stage.FAILED


@pytest.mark.parametrize("stage", [Stage.PRE_HOOKS, Stage.PREPARING, Stage.SUMMARISING, Stage.RESTORING])
def test_a_cancelled_run_ends_in_cancelled(stage: Stage) -> None:
    watcher = Watcher(cancel_at=stage)
    with pytest.raises(CompactionCancelled):
        compact_full(make_talk(), REQUEST, RunPorts(Script(), monitor=watcher))
    assert watcher.stages[-1] is Stage.CANCELLED


def test_a_summariser_that_notices_the_cancelling_itself_ends_in_cancelled() -> None:
    watcher = Watcher()
    with pytest.raises(CompactionCancelled):
        compact_full(make_talk(), REQUEST, RunPorts(Script([CompactionCancelled()]), monitor=watcher))
    assert watcher.stages[-1] is Stage.CANCELLED


def test_transport_is_tried_twice_and_no_more() -> None:
    script = Script([SummarizerUnavailable("overloaded"), summarise_well])
    assert not compact_full(make_talk(), REQUEST, RunPorts(script)).summary.missing_sections
    assert len(script.requests) == 2
    script = Script([SummarizerUnavailable("overloaded")])
    with pytest.raises(SummarizerUnavailable):
        compact_full(make_talk(), REQUEST, RunPorts(script))
    assert len(script.requests) == 2
    script = Script([SummarizerUnavailable("the key is wrong", is_retryable=False)])
    with pytest.raises(SummarizerUnavailable):
        compact_full(make_talk(), REQUEST, RunPorts(script))
    assert len(script.requests) == 1


def test_a_fork_that_fails_is_followed_by_a_plain_request_and_both_are_accounted_for() -> None:
    script, watcher = Script([say("Let me look.", "tool_use"), summarise_well]), Watcher()
    request = CompactionRequest(trigger=Trigger.AUTO, now=NOW, parent=PARENT)
    outcome = compact_full(make_talk(), request, RunPorts(script, monitor=watcher))
    assert [each.route for each in script.requests] == [SummaryRoute.FORK, SummaryRoute.PLAIN]
    assert [(call.route, call.failure) for call in outcome.calls] == [
        (SummaryRoute.FORK, "tool_use"),
        (SummaryRoute.PLAIN, None),
    ]
    answered = [event for event in watcher.events if isinstance(event, SummaryAnswered)]
    assert [event.failure for event in answered] == ["tool_use", None]


def test_a_refused_fork_goes_on_plain_but_a_dead_line_does_not() -> None:
    request = CompactionRequest(trigger=Trigger.AUTO, now=NOW, parent=PARENT)
    script = Script([SummarizerUnavailable("invalid request", is_retryable=False), summarise_well])
    compact_full(make_talk(), request, RunPorts(script))
    assert [each.route for each in script.requests] == [SummaryRoute.FORK, SummaryRoute.PLAIN]
    script = Script([SummarizerUnavailable("overloaded")])
    with pytest.raises(SummarizerUnavailable):
        compact_full(make_talk(), request, RunPorts(script))
    assert [each.route for each in script.requests] == [SummaryRoute.FORK, SummaryRoute.FORK]


def test_missing_sections_are_asked_for_once_more_and_put_in_their_places() -> None:
    missing = ("Errors and Fixes", "Optional Next Step")
    first = say(f"<summary>{write_sections(Variant.FULL, without=missing)}</summary>")
    script = Script([first, summarise_well])
    outcome = compact_full(make_talk(), REQUEST, RunPorts(script))
    assert not outcome.summary.missing_sections
    assert [outcome.summary.text.index(name) for name in SECTIONS] == sorted(
        outcome.summary.text.index(name) for name in SECTIONS
    )
    second = script.requests[1]
    assert second.missing_sections == missing
    assert "4. Errors and Fixes\n9. Optional Next Step" in second.prompt
    messages = second.body["messages"]
    assert isinstance(messages, list)
    assert [message["role"] for message in messages[-3:]] == ["user", "assistant", "user"]
    assert len(outcome.calls) == 2


@pytest.mark.parametrize(
    "second",
    [say("", "refusal"), say("still nothing"), SummarizerUnavailable("down"), PromptTooLong(), say("x", None)],
)
def test_sections_that_stay_missing_make_the_summary_incomplete_not_failed(second: object) -> None:
    missing = ("Pending Tasks",)
    first = say(f"<summary>{write_sections(Variant.FULL, without=missing)}</summary>")
    outcome = compact_full(make_talk(), REQUEST, RunPorts(Script([first, second])))  # type: ignore[list-item]
    assert outcome.summary.missing_sections == missing
    assert outcome.summary.missing_sections


def test_a_summary_made_by_the_server_needs_no_sections() -> None:
    script = Script([say("All about it.", "compaction", is_native=True)])
    outcome = compact_full(make_talk(), REQUEST, RunPorts(script))
    assert outcome.summary.is_native
    assert not outcome.summary.missing_sections
    assert len(script.requests) == 1


@pytest.mark.parametrize("refusals", [1, 2, 3])
def test_too_long_keeps_the_newest_rounds_word_for_word(refusals: int) -> None:
    entries = make_talk(10)
    script = Script([PromptTooLong()] * refusals + [summarise_well])
    outcome = compact_full(entries, REQUEST, RunPorts(script))
    check_outcome(outcome, entries)
    sent = [len(request.entries) for request in script.requests]
    assert sent == sorted(sent, reverse=True)
    assert len(set(sent)) == refusals + 1
    assert outcome.kept == tuple(entries[-len(outcome.kept) :])
    assert outcome.entries[1] is outcome.summary_entry
    assert outcome.list_uuids(EntryFate.DROPPED) == ()
    assert "newest messages follow" in read_summary(outcome.summary_entry)
    boundary = outcome.boundary.payload
    assert isinstance(boundary, Boundary)
    assert boundary.preserved_segment is not None
    assert boundary.preserved_segment.anchor_uuid == outcome.summary_entry.uuid


def test_four_refusals_are_one_too_many() -> None:
    script = Script([PromptTooLong(200_100, 200_000)] * 4 + [summarise_well])
    with pytest.raises(ConversationTooLong, match="Go back a few messages"):
        compact_full(make_talk(20), REQUEST, RunPorts(script))
    assert len(script.requests) == 4


def test_a_small_model_that_refuses_hands_over_to_a_wider_one_before_anything_is_shrunk() -> None:
    models = SummaryModels("big", "small", small_window_tokens=200_000, session_window_tokens=1_000_000)
    request = CompactionRequest(trigger=Trigger.AUTO, now=NOW, models=models)
    script = Script([PromptTooLong(200_100, 200_000), summarise_well])
    outcome = compact_full(make_talk(10), request, RunPorts(script))
    assert [each.model for each in script.requests] == ["small", "big"]
    assert outcome.kept == ()


def test_lines_without_a_uuid_do_not_break_the_chain() -> None:
    entries = make_talk(10)
    entries.insert(3, replace(entries[3], type="file-history-snapshot", uuid=None, message=None))
    entries.append(replace(entries[-1], uuid=None))
    outcome = compact_full(entries, REQUEST, RunPorts(Script([PromptTooLong(), summarise_well])))
    check_chain(outcome.entries)
    assert outcome.kept[-1].uuid is None


def test_oldest_rounds_are_left_out_and_named_where_a_kept_tail_would_pass_the_line() -> None:
    entries = make_talk(10)
    parent = ParentRequest(PARENT.body)
    request = CompactionRequest(trigger=Trigger.AUTO, now=NOW, threshold_tokens=20_050, parent=parent)
    script = Script([PromptTooLong(200_150, 200_000), summarise_well])
    outcome = compact_full(entries, request, RunPorts(script))
    check_outcome(outcome, entries)
    dropped = outcome.list_uuids(EntryFate.DROPPED)
    assert dropped == tuple(entry.uuid for entry in entries[: len(dropped)])
    assert dropped
    assert outcome.kept == ()
    assert script.requests[0].route is SummaryRoute.FORK
    assert script.requests[1].route is SummaryRoute.PLAIN
    assert script.requests[1].entries[0].is_meta
    assert f"The {len(dropped)} oldest messages did not fit" in read_summary(outcome.summary_entry)


def test_a_result_still_above_the_line_is_reported() -> None:
    request = CompactionRequest(trigger=Trigger.AUTO, now=NOW, threshold_tokens=30_000, prefix_tokens=29_990)
    watcher = Watcher()
    outcome = compact_full(make_talk(), request, RunPorts(Script(), monitor=watcher))
    assert outcome.is_above_threshold
    assert (
        ThresholdExceeded(session_id="s-1", post_tokens=outcome.expected_tokens, line_tokens=30_000) in watcher.events
    )


def test_restored_items_stand_behind_the_summary_and_are_counted_in_the_log() -> None:
    line = Entry("attachment", payload=Attachment("file", ("print(1)",), "user"))
    items = (
        RestoredItem(
            kind=RestoredKind.FILE,
            name="/src/a.py",
            tokens=2,
            state=RestoredState.TRUNCATED,
            reason="Cut.",
            code="cut",
            entry=line,
        ),
        RestoredItem(
            kind=RestoredKind.FILE,
            name="/src/b.py",
            tokens=9,
            state=RestoredState.SKIPPED,
            reason="Too much.",
            code="budget",
        ),
        RestoredItem(kind=RestoredKind.TODOS, name="todos", tokens=2, state=RestoredState.RESTORED, entry=line),
    )
    seen: dict[str, object] = {}

    def restore(entries: object, kept: object, *, now: object) -> RestoredContext:
        seen.update(entries=entries, kept=kept, now=now)
        return RestoredContext(items)

    entries = make_talk()
    outcome = compact_full(entries, REQUEST, RunPorts(Script(), restore=restore))
    check_outcome(outcome, entries)
    assert seen == {"entries": entries, "kept": (), "now": NOW}
    assert [entry.type for entry in outcome.entries] == ["system", "user", "attachment", "attachment"]
    assert outcome.restored == items
    names = [event.name for event in outcome.events]
    assert names == ["compaction_completed", "file_restored", "file_not_restored"]


def test_the_completed_event_holds_numbers_and_ids_only() -> None:
    recompaction = RecompactionInfo(True, 4, "run-7", "repl_main_thread")
    request = CompactionRequest(
        trigger=Trigger.AUTO, now=NOW, parent=PARENT, threshold_tokens=167_000, recompaction=recompaction
    )
    watcher = Watcher()
    outcome = compact_full(make_talk(), request, RunPorts(Script(), monitor=watcher))
    event = watcher.events[-1]
    assert isinstance(event, CompactionCompleted)
    assert event.to_fields() == {
        "event": "compaction_completed",
        "session_id": "s-1",
        "kind": "full",
        "trigger": "auto",
        "original_turns": 2,
        "summary_tokens": event.summary_tokens,
        "tokens_saved": outcome.tokens_saved,
        "files_restored": 0,
        "duration_ms": 2_000,
        "pre_tokens": outcome.pre_tokens,
        "post_tokens": outcome.replaced_tokens,
        "input_tokens": 100,
        "output_tokens": 50,
        "cache_read_tokens": 900,
        "cache_creation_tokens": 0,
        "total_tokens": 1_050,
        "fork_hit_percent": 90,
        "is_recompaction": True,
        "turns_since_previous": 4,
        "previous_run_id": "run-7",
        "line_tokens": 167_000,
        "source": "repl_main_thread",
    }


def test_the_old_usage_of_kept_entries_does_not_measure_the_new_context() -> None:
    talk = Talk()
    talk.say("begin")
    for number in range(8):
        talk.answer(f"m{number}", text("words " * 50), tokens=190_000)
        talk.say("more")
    script = Script([PromptTooLong(), summarise_well])
    outcome = compact_full(talk.entries, REQUEST, RunPorts(script))
    assert outcome.kept
    assert measure_context(read_context(outcome)).tokens == outcome.replaced_tokens < 5_000
