from bench.threads import read_session_calls
from compaction.cache.breaks import CacheOutcome, judge_thread
from compaction.cache.causes import Cause
from compaction.timeline.calls import CONVERSATION_START
from compaction.transcripts.entries import Entry
from tests.compaction.cache.builders import digest, text, tool
from tests.compaction.making import answer, make_entry, request, result, say, thought
from tests.compaction.making import text as words


def _usage(read: int, written: int) -> dict[str, object]:
    return {
        "input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": read, "cache_creation_input_tokens": written,
    }  # fmt: skip


def _chain(*entries: Entry) -> list[Entry]:
    """Each entry hangs under the one before it."""
    chained: list[Entry] = []
    for entry in entries:
        chained.append(entry.changed(parent_uuid=chained[-1].uuid if chained else None))
    return chained


def _at(seconds: int) -> str:
    return f"2026-05-01T{10 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.000Z"


def _judge(entries: list[Entry]) -> list[tuple[CacheOutcome, Cause | None]]:
    return [(verdict.outcome, verdict.cause) for verdict in judge_thread(read_session_calls(entries)[None])]


def test_lines_of_one_response_are_one_call() -> None:
    entries = _chain(
        say("go"),
        answer("m1", words("a"), usage=_usage(0, 50_000)),
        answer("m1", request("t1"), usage=_usage(0, 50_000)),
        say([result("t1")]),
        answer("m2", words("b"), usage=_usage(50_000, 400)),
    )
    calls = read_session_calls(entries)[None]
    assert [(call.call_id, call.parent_call_id) for call in calls] == [("m1", CONVERSATION_START), ("m2", "m1")]
    assert _judge(entries) == [(CacheOutcome.EXPECTED, Cause.FIRST_CALL), (CacheOutcome.NOTHING, None)]


def test_compaction_and_cleared_results_announce_the_next_call_only() -> None:
    boundary = make_entry("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 1})
    micro = make_entry("system", subtype="microcompact_boundary", microcompactMetadata={"trigger": "auto"})
    entries = _chain(
        answer("m1", usage=_usage(0, 50_000)),
        boundary,
        answer("m2", usage=_usage(10_000, 20_000)),
        micro,
        answer("m3", usage=_usage(11_000, 20_000)),
        answer("m4", usage=_usage(11_000, 20_000)),
    )
    assert _judge(entries) == [
        (CacheOutcome.EXPECTED, Cause.FIRST_CALL),
        (CacheOutcome.EXPECTED, Cause.COMPACTED),
        (CacheOutcome.EXPECTED, Cause.MICRO_COMPACTED),
        (CacheOutcome.BREAK, Cause.UNEXPLAINED),
    ]


def test_going_back_to_an_earlier_prompt_is_a_rewind() -> None:
    first, second, third = _chain(
        answer("m1", usage=_usage(0, 50_000)), say("more"), answer("m2", usage=_usage(50_000, 9_000))
    )
    other = say("instead").changed(parent_uuid=first.uuid)
    last = answer("m3", usage=_usage(50_000, 500)).changed(parent_uuid=other.uuid)
    assert _judge([first, second, third, other, last])[2] == (CacheOutcome.EXPECTED, Cause.REWOUND)


def test_new_root_is_a_rewind_only_when_the_prompt_is_shorter() -> None:
    first = answer("m1", usage=_usage(0, 50_000))
    shorter = answer("m2", usage=_usage(16_000, 20_000))
    longer = answer("m2", usage=_usage(16_000, 40_000))
    assert _judge([first, shorter])[1] == (CacheOutcome.EXPECTED, Cause.REWOUND)
    assert _judge([first, longer])[1] == (CacheOutcome.BREAK, Cause.UNEXPLAINED)
    stray = answer("m2", usage=_usage(16_000, 20_000), parentUuid="not in this file")
    assert _judge([first, stray])[1] == (CacheOutcome.EXPECTED, Cause.PROMPT_SHORTENED)


def test_a_haiku_call_between_two_others_is_no_rewind() -> None:
    entries = _chain(
        answer("m1", usage=_usage(0, 50_000)),
        answer("side", usage=_usage(0, 900), model="claude-haiku-4-5"),
        answer("m2", usage=_usage(0, 50_000)),
    )
    calls = read_session_calls(entries)[None]
    assert (calls[2].parent_call_id, judge_thread(calls)[2].parent_call_id) == ("side", "m1")
    assert _judge(entries)[1:] == [(CacheOutcome.NOTHING, None), (CacheOutcome.BREAK, Cause.UNEXPLAINED)]


def test_new_prompt_to_an_older_model_that_thought_before_drops_its_thinking() -> None:
    entries = _chain(
        say("go"),
        answer("m1", thought("hm"), usage=_usage(0, 50_000), model="claude-sonnet-4-5"),
        say("and now"),
        answer("m2", words("ok"), usage=_usage(20_000, 31_000), model="claude-sonnet-4-5"),
    )
    assert _judge(entries)[1] == (CacheOutcome.BREAK, Cause.THINKING_DROPPED)


def test_commands_and_restarts_between_two_calls_are_noticed() -> None:
    hook = make_entry("progress", data={"type": "hook_progress", "hookName": "SessionStart:resume"})
    command = _chain(
        answer("m1", usage=_usage(0, 50_000)), say("skill text", isMeta=True), answer("m2", usage=_usage(0, 50_000))
    )
    restart = [answer("m1", usage=_usage(0, 50_000)), hook, answer("m2", usage=_usage(0, 50_000))]
    assert _judge(command)[1] == (CacheOutcome.BREAK, Cause.COMMAND_STARTED)
    assert _judge(restart)[1] == (CacheOutcome.BREAK, Cause.CLIENT_RESTARTED)


def test_sub_agents_are_threads_of_their_own() -> None:
    entries = [
        answer("m1", usage=_usage(0, 50_000)),
        answer("a1", usage=_usage(0, 9_000), isSidechain=True, agentId="x"),
        answer("m2", usage=_usage(50_000, 10)),
    ]
    calls = read_session_calls(entries)
    assert {agent: len(found) for agent, found in calls.items()} == {None: 2, "x": 1}


def test_known_requests_give_start_source_lifetime_and_fingerprint() -> None:
    shape = {"system": [text("You are.")], "tools": [tool("Bash")]}
    lines = [
        make_entry("api-request-shape", shapeHash="s", shape=shape),
        make_entry("api-request", id="r1", shapeHash="s", querySource="sdk", keep=0, tail=["h0"], params={"model": "m"},
                   timestamp=_at(0)),
        answer("m1", usage=_usage(0, 50_000), requestRef="r1", promptCacheRequested="1h", timestamp=_at(200)),
    ]  # fmt: skip
    (call,) = read_session_calls(lines, digest=digest)[None]
    assert (call.at.minute, call.query_source, call.requested_ttl) == (0, "sdk", "1h")
    assert call.fingerprint is not None
    assert call.fingerprint.messages == ("h0",)
    assert read_session_calls(lines)[None][0].fingerprint is None


def test_pause_is_counted_from_start_to_start() -> None:
    entries = _chain(
        answer("m1", usage=_usage(0, 50_000), timestamp=_at(0)),
        answer("m1", usage=_usage(0, 50_000), timestamp=_at(200)),
        answer("m2", usage=_usage(0, 50_000), timestamp=_at(310)),
    )
    assert _judge(entries)[1] == (CacheOutcome.BREAK, Cause.TTL_EXPIRED_5M)
