"""Every kind of line becomes a typed entry; content and fields are decoded only when looked at."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from compaction.errors import AgentMetaUnreadable
from compaction.transcripts.blocks import write_block
from compaction.transcripts.entries import (
    DocumentBlock,
    Entry,
    ImageBlock,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from compaction.transcripts.lines import RawLine
from compaction.transcripts.payloads import (
    ApiError,
    ApiRequestBlob,
    ApiRequestLine,
    ApiRequestShape,
    Attachment,
    Boundary,
    CacheMarker,
    CostState,
    FileSnapshot,
    LastPrompt,
    MicroBoundary,
    OlderSummary,
    Payload,
    PreservedSegment,
    Progress,
    QueueOperation,
    Title,
    TurnDuration,
)
from compaction.transcripts.reader import read_line
from compaction.transcripts.subagents import AgentMeta, parse_agent_id, read_agent_meta, write_nested_line
from compaction.transcripts.transcript import read_transcript
from tests.compaction.making import answer, make_entry, make_line, request, result, say, text, thought, use
from tests.compaction.recorded import RECORDED_DATA


def read_one(line_type: str, **fields: object) -> Entry:
    (entry,) = read_transcript(make_line(line_type, **fields)).entries
    return entry


def test_common_keys_are_typed() -> None:
    entry = read_one(
        "user", uuid="u2", parentUuid="u1", timestamp="2026-05-01T10:00:00.250Z", sessionId="s", agentId="a",
        isSidechain=True, isMeta=True, isCompactSummary=True, version="2.1.112", cwd="/src", gitBranch="main",
        requestId="req_1", message={"role": "user", "content": "hi"},
    )  # fmt: skip
    assert entry.at == datetime(2026, 5, 1, 10, 0, 0, 250_000, tzinfo=UTC)
    assert (entry.uuid, entry.parent_uuid, entry.session_id, entry.agent_id) == ("u2", "u1", "s", "a")
    assert (entry.is_sidechain, entry.is_meta, entry.is_compact_summary, entry.is_api_error) == (
        True,
        True,
        True,
        False,
    )
    assert (entry.version, entry.cwd, entry.git_branch, entry.request_id) == ("2.1.112", "/src", "main", "req_1")
    assert entry.fields["sessionId"] == "s"


def test_every_block_is_typed_and_unknown_ones_are_kept_whole() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "AA=="}
    entry = answer(
        "msg_1",
        text("a"),
        thought("b"),
        {"type": "redacted_thinking", "data": "xyz"},
        request("t1", "Bash", command="é"),
        {"type": "server_tool_use", "id": "s1"},
        result("t1", [text("c"), {"type": "image", "source": source}], is_error=True),
        result("t2"),
        {"type": "image", "source": source},
        {"type": "document", "source": source, "title": "T"},
        7,
        "bare",
    )
    assert entry.message is not None
    assert list(entry.message.content) == [
        TextBlock("a"),
        ThinkingBlock("b", "sig"),
        ThinkingBlock("", None, "xyz"),
        ToolUseBlock("t1", "Bash", {"command": "é"}, '{"command":"é"}'),
        OtherBlock("server_tool_use", {"type": "server_tool_use", "id": "s1"}, '{"type":"server_tool_use","id":"s1"}'),
        ToolResultBlock("t1", (TextBlock("c"), ImageBlock(source)), is_error=True, is_plain=False),
        ToolResultBlock("t2", (TextBlock("done"),)),
        ImageBlock(source),
        DocumentBlock(source, {"title": "T"}),
        OtherBlock("", {"value": 7}, "7"),
        TextBlock("bare"),
    ]


def test_usage_is_typed_whole() -> None:
    usage = use(
        3, 9, cache_creation_input_tokens=30, cache_read_input_tokens=500, service_tier="standard", speed="fast",
        inference_geo="us", cache_creation={"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
        server_tool_use={"web_search_requests": 2, "web_fetch_requests": 1},
        output_tokens_details={"thinking_tokens": 4},
        iterations=[{"type": "compaction", "input_tokens": 900, "output_tokens": 80},
                    {"type": "message", "input_tokens": 3, "output_tokens": 9, "cache_read_input_tokens": 60}],
    )  # fmt: skip
    message = answer("msg_1", usage=usage).message
    assert message is not None
    read = message.usage
    assert read is not None
    assert (read.cache_creation_tokens, read.cache_creation_5m_tokens, read.cache_creation_1h_tokens) == (30, 10, 20)
    assert (read.thinking_tokens, read.web_search_requests, read.web_fetch_requests) == (4, 2, 1)
    assert (read.service_tier, read.speed, read.inference_geo) == ("standard", "fast", "us")
    assert [iteration.type for iteration in read.iterations] == ["compaction", "message"]
    assert read.prompt_tokens == 533
    assert read.context_tokens == 72


def test_creation_without_a_split_counts_as_five_minutes() -> None:
    message = answer("msg_1", usage=use(1, 1, cache_creation_input_tokens=30)).message
    assert message is not None
    assert message.usage == Usage(1, 1, 30, 30, 0, 0)


def test_the_cache_miss_reason_of_the_api_is_read() -> None:
    entry = read_one("assistant", message={"diagnostics": {"cache_miss_reason": {"type": "unavailable"}}})
    assert entry.message is not None
    assert entry.message.cache_miss_reason == "unavailable"


PAYLOADS: list[tuple[str, dict[str, object], Payload | None]] = [
    (
        "system",
        {
            "subtype": "compact_boundary",
            "compactMetadata": {
                "trigger": "auto", "preTokens": 167_766, "postTokens": 6_977, "durationMs": 122_374,
                "messagesSummarized": 80, "cumulativeDroppedTokens": 160_789, "preCompactDiscoveredTools": ["Monitor"],
                "userContext": "focus", "preservedSegment": {"headUuid": "h", "anchorUuid": "a", "tailUuid": "t"},
            },
        },
        Boundary(
            "auto", 167_766, 6_977, 122.374, 80, PreservedSegment("h", "t", "a"), ("Monitor",), "focus", 160_789
        ),
    ),
    ("system", {"subtype": "compact_boundary"}, Boundary()),
    (
        "system",
        {
            "subtype": "microcompact_boundary",
            "microcompactMetadata": {"trigger": "auto", "preTokens": 50_745, "tokensSaved": 20_134,
                                     "compactedToolIds": ["t1", "t2"], "clearedAttachmentUUIDs": ["u"]},
        },
        MicroBoundary("auto", 50_745, 20_134, ("t1", "t2"), ("u",)),
    ),
    ("system", {"subtype": "turn_duration", "durationMs": 1500, "messageCount": 3}, TurnDuration(1.5, 3)),
    (
        "system",
        {"subtype": "api_error", "error": {"status": 529}, "retryInMs": 526, "retryAttempt": 1, "maxRetries": 10},
        ApiError(529, 0.526, 1, 10),
    ),
    ("system", {"content": "an old notice"}, None),
    ("progress", {"data": {"type": "bash_progress"}, "toolUseID": "b", "parentToolUseID": "t"},
     Progress("bash_progress", "b", "t")),
    ("attachment", {"attachment": {"type": "date"}, "rendered": [{"content": "today"}], "renderedRole": "system"},
     Attachment("date", ("today",), "system")),
    ("summary", {"summary": "A title", "leafUuid": "u"}, Title("A title", "u")),
    ("SummaryMessage", {"content": "Turns 1-47", "originalTurns": 47, "tokensSaved": 15_000},
     OlderSummary("Turns 1-47", 47, 15_000)),
    ("file-history-snapshot", {"messageId": "m", "isSnapshotUpdate": True}, FileSnapshot("m", is_update=True)),
    (
        "api-request",
        {"id": "r1", "querySource": "sdk", "shapeHash": "h", "params": {"model": "m"}, "base": "r0", "keep": 4,
         "tail": ["x"], "cacheControl": [{"path": ["system", 0], "value": {"type": "ephemeral", "ttl": "1h"}}],
         "requestDigest": "d"},
        ApiRequestLine("r1", "sdk", "h", "m", "r0", 4, ("x",), (CacheMarker(("system", 0), "1h"),), "d"),
    ),
    ("api-request-shape", {"shapeHash": "h", "shape": {"system": []}}, ApiRequestShape("h")),
    ("api-request-blob", {"hash": "b", "message": {"role": "user", "content": []}}, ApiRequestBlob("b")),
    ("cost-state", {"totalCostUSD": 0.1733706, "hasUnknownModelCost": True}, CostState(Decimal("0.1733706"), True)),
    ("queue-operation", {"operation": "enqueue", "content": "next"}, QueueOperation("enqueue", "next")),
    ("last-prompt", {"lastPrompt": "do", "leafUuid": "u"}, LastPrompt("do", "u")),
    ("permission-mode", {"permissionMode": "plan"}, None),
]  # fmt: skip


@pytest.mark.parametrize(("line_type", "fields", "expected"), PAYLOADS)
def test_payloads_are_typed(line_type: str, fields: dict[str, object], expected: Payload | None) -> None:
    entry = read_one(line_type, **fields)
    assert entry.payload == expected
    assert entry.message is None


def test_a_sub_agents_message_inside_progress_is_no_message_of_this_thread() -> None:
    nested = {"type": "assistant", "uuid": "n1", "message": {"id": "msg_9", "role": "assistant", "content": [text("x")],
                                                            "usage": use()}}  # fmt: skip
    entry = read_one("progress", sessionId="s", data={"type": "agent_progress", "agentId": "a1", "message": nested})
    assert entry.message is None
    raw = write_nested_line(entry)
    assert raw is not None
    (inner,) = read_line(RawLine(1, 0, raw, len(raw)))
    assert isinstance(inner, Entry)
    assert (inner.uuid, inner.agent_id, inner.is_sidechain, inner.session_id, inner.is_response) == (
        "n1",
        "a1",
        True,
        "s",
        True,
    )
    assert write_nested_line(say("no progress")) is None


def look_from_deep_down(entry: Entry, depth: int) -> object:
    """Looks at the content with this many calls on the stack."""
    if depth:
        return look_from_deep_down(entry, depth - 1)
    return entry.message.content[0] if entry.message else None


def test_content_that_cannot_be_decoded_is_one_unreadable_block() -> None:
    nested = b'{"a":' * 800 + b"1" + b"}" * 800
    digits = b"[" + b"9" * 5_000 + b"]"
    template = b'{"type":"user","uuid":"u","message":{"content":%s}}\n'
    deep, long = read_transcript(template % nested + template % digits).entries
    assert look_from_deep_down(deep, 500) == OtherBlock("unreadable", {}, nested.decode())
    assert look_from_deep_down(long, 0) == OtherBlock("unreadable", {}, digits.decode())
    assert dict(long.fields) == {}
    assert (deep.uuid, long.uuid) == ("u", "u")


def test_blocks_of_an_odd_shape_are_kept_whole() -> None:
    odd: list[dict[str, object]] = [
        {"type": "tool_use", "id": ""},
        {"type": "tool_result"},
        {"type": "text", "text": 5},
    ]
    entry = answer("m1", *odd, request("t") | {"input": "raw"}, result("t", [5, "s"]), result("t", None))
    assert entry.message is not None
    *kept, asked, parts, nothing = entry.message.content
    assert [block.type for block in kept] == ["tool_use", "tool_result", "text"]
    assert all(isinstance(block, OtherBlock) for block in kept)
    assert asked == ToolUseBlock("t", "Read", {}, '"raw"')
    assert parts == ToolResultBlock("t", (OtherBlock("", {"value": 5}, "5"), TextBlock("s")), is_plain=False)
    assert nothing == ToolResultBlock("t")
    assert [write_block(block) for block in kept] == odd


def test_lazy_content_compares_and_prints_like_a_tuple() -> None:
    message = say("x").message
    assert message is not None
    assert message.content == (TextBlock("x"),)
    assert hash(message.content) == hash((TextBlock("x"),))
    assert repr(message.content) == repr((TextBlock("x"),))


@pytest.mark.parametrize(
    ("name", "agent_id"),
    [
        ("agent-a6277da60c545c7ca.jsonl", "a6277da60c545c7ca"),
        ("s/subagents/agent-c8d9b115.meta.json", "c8d9b115"),
        ("69cc2197-bf60-4bba-bdca-84b5f3090016.jsonl", None),
        ("agent-../../x.jsonl", None),
        ("agent-.jsonl", None),
    ],
)
def test_an_agent_file_names_its_agent(name: str, agent_id: str | None) -> None:
    assert parse_agent_id(name) == agent_id


@pytest.mark.recorded_data
def test_recorded_meta_files_join_their_parents_request() -> None:
    paths = sorted(RECORDED_DATA.rglob("agent-*.meta.json"))
    if not paths:
        pytest.skip("the recorded sessions are not beside this checkout")
    for path in paths:
        meta = read_agent_meta(path.read_bytes())
        parent = read_transcript(path.parents[1].with_suffix(".jsonl").read_bytes())
        requests = [block for entry in parent.entries if entry.message for block in entry.message.content]
        assert any(isinstance(block, ToolUseBlock) and block.id == meta.tool_use_id for block in requests)
        assert (meta.agent_type, meta.is_finished, meta.spawn_depth) == ("general-purpose", True, 1)


@pytest.mark.parametrize("data", [b"", b"[]", b"nonsense", b"\xff", b"[" * 5_000])
def test_a_broken_meta_file_is_refused_with_a_sentence(data: bytes) -> None:
    with pytest.raises(AgentMetaUnreadable, match="not a JSON object"):
        read_agent_meta(data)


def test_an_empty_meta_file_says_nothing() -> None:
    assert read_agent_meta(b'{"agentType": 5}') == AgentMeta()


def test_entries_made_alike_are_equal() -> None:
    assert make_entry("user", uuid="u", message={"content": "x"}) == make_entry(
        "user", uuid="u", message={"content": "x"}
    )
