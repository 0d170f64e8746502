"""Plain lines: the fast path gives the observation of the slow path, and unusual lines take the slow path."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.timeline.fast_lines import read_plain_observation
from compaction.timeline.observations import READING_VERSION, LineKind
from compaction.timeline.read_entries import read_observation
from compaction.transcripts.client_protocol import CAVEAT
from compaction.transcripts.entries import Entry
from compaction.transcripts.lines import RawLine
from compaction.transcripts.reader import read_line

USAGE = {"input_tokens": 3, "output_tokens": 9, "cache_creation_input_tokens": 7, "service_tier": "standard"}
ANSWER: dict[str, Any] = {
    "id": "msg_1",
    "role": "assistant",
    "model": "claude-opus-4-5",
    "content": [{"type": "text", "text": "Well."}],
    "usage": USAGE,
}
LINE: dict[str, Any] = {
    "uuid": "u1",
    "parentUuid": "u0",
    "sessionId": "s1",
    "timestamp": "2026-05-01T10:00:00.123Z",
    "cwd": "/home/ann",
    "gitBranch": "main",
    "version": "2.1.126",
    "isSidechain": False,
}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "depth 12 m"}
TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a b", "limit": 3}}


def write(line_type: str, message: object, **fields: object) -> bytes:
    return json.dumps(LINE | {"type": line_type, "message": message} | fields).encode() + b"\n"


def read_slowly(raw: bytes, *, keeps_text: bool) -> Any:
    (entry,) = read_line(RawLine(1, 0, raw, len(raw)))
    return read_observation(entry, keeps_text=keeps_text) if isinstance(entry, Entry) else None


PLAIN = {
    "open answer": write("assistant", ANSWER, requestId="req_1"),
    "stopped answer": write("assistant", ANSWER | {"stop_reason": "end_turn"}),
    "thinking": write("assistant", ANSWER | {"content": [{"type": "thinking", "thinking": "Hm", "signature": "x"}]}),
    "hidden thinking": write("assistant", ANSWER | {"content": [{"type": "redacted_thinking", "data": "x"}]}),
    "tool use": write("assistant", ANSWER | {"content": [TOOL_USE]}),
    "tool search": write(
        "assistant", ANSWER | {"content": [TOOL_USE | {"name": "ToolSearch"}], "stop_reason": "tool_use"}
    ),
    "caveat": write("user", {"content": "<local-command-caveat>Caveat: words</local-command-caveat>"}, isMeta=True),
    "older caveat": write("user", {"content": f"{CAVEAT} DO NOT respond to these messages."}, isMeta=True),
    "caveat beside a result": write(
        "user", {"content": [RESULT, {"type": "text", "text": "<local-command-caveat>x"}]}, isMeta=True
    ),
    "request named": write("assistant", ANSWER, requestRef="r1", promptCacheRequested="1h"),
    "miss told": write("assistant", ANSWER | {"diagnostics": {"cache_miss_reason": {"type": "model_changed"}}}),
    "no message id": write("assistant", {name: ANSWER[name] for name in ("role", "content", "usage")}),
    "without usage": write("assistant", ANSWER | {"usage": None}),
    "no blocks": write("assistant", ANSWER | {"content": []}),
    "prompt": write("user", {"role": "user", "content": "  Draw\nthe chart. "}),
    "prompt in tags": write("user", {"role": "user", "content": "<command-name>x</command-name>"}),
    "printed by a command": write("user", {"content": "<local-command-stdout>Bye</local-command-stdout>"}),
    "command": write("user", {"role": "user", "content": "Caveat"}, isMeta=True),
    "result": write("user", {"role": "user", "content": [RESULT]}),
    "result and words": write("user", {"role": "user", "content": [RESULT, {"type": "text", "text": "look"}]}),
    "result of parts": write(
        "user", {"content": [RESULT | {"content": [{"type": "text", "text": "dep"}, {"type": "image", "source": {}}]}]}
    ),
    "interruption": write("user", {"role": "user", "content": "[Request interrupted by user]"}),
    "client command": write("user", {"content": "<command-name>/exit</command-name>"}, permissionMode="plan"),
    "task notification": write("user", {"content": "Task done."}, origin={"kind": "task-notification"}),
    "no uuid": write("user", {"role": "user", "content": [RESULT]}, uuid=None),
    "sidechain": write("user", {"content": [RESULT]}, isSidechain=True, agentId="a1"),
}
ODD = {
    "made by the client": write("assistant", ANSWER | {"model": "<synthetic>"}),
    "result of an unknown kind": write("user", {"content": [RESULT | {"content": [{"type": "reference"}]}]}),
    "prompt of blocks": write("user", {"role": "user", "content": [{"type": "text", "text": "Draw."}]}),
    "summary": write("user", {"role": "user", "content": "So far."}, isCompactSummary=True),
    "answer as text": write("assistant", ANSWER | {"content": "Well."}),
    "no content": write("user", {"role": "user"}),
    "content is null": write("user", {"role": "user", "content": None}),
    "other role": write("user", {"role": "assistant", "content": [RESULT]}),
    "text is a number": write("assistant", ANSWER | {"content": [{"type": "text", "text": 5}]}),
    "negative tokens": write("assistant", ANSWER | {"usage": USAGE | {"input_tokens": -1}}),
    "uuid is a number": write("assistant", ANSWER, uuid=5),
    "time without offset": write("assistant", ANSWER, timestamp="2026-05-01T10:00:00"),
    "reference is a number": write("assistant", ANSWER, requestRef=5),
    "half a character": write("assistant", ANSWER).replace(b"Well.", b"\\ud800"),
    "no message": json.dumps(LINE | {"type": "user"}).encode(),
    "system": json.dumps(LINE | {"type": "system", "subtype": "turn_duration", "durationMs": 5}).encode(),
    "broken": b'{"type":"user","message":{"role":"us\n',
    "dropped": b"",
}


@pytest.mark.parametrize("keeps_text", [False, True])
@pytest.mark.parametrize("raw", PLAIN.values(), ids=PLAIN)
def test_fast_path_gives_the_observation_of_the_slow_path(raw: bytes, *, keeps_text: bool) -> None:
    fact = read_plain_observation(raw, keeps_text=keeps_text)
    assert fact is not None
    assert fact == read_slowly(raw, keeps_text=keeps_text)


@pytest.mark.parametrize("raw", ODD.values(), ids=ODD)
def test_unusual_line_takes_the_slow_path(raw: bytes) -> None:
    assert read_plain_observation(raw) is None


@pytest.mark.parametrize(
    ("name", "kind", "tokens", "told"),
    [
        ("prompt", LineKind.PROMPT, 5, None),
        ("result", LineKind.RESULT, 3, None),
        ("result of parts", LineKind.RESULT, 2001, None),
        ("interruption", LineKind.OTHER, 7, "interrupted"),
        ("client command", LineKind.OTHER, 9, "/exit"),
        ("task notification", LineKind.OTHER, 3, None),
        ("caveat", LineKind.COMMAND, 15, "caveat"),
        ("older caveat", LineKind.COMMAND, 29, "caveat"),
        ("caveat beside a result", LineKind.COMMAND, 9, None),
        ("command", LineKind.COMMAND, 2, None),
        ("open answer", LineKind.RESPONSE, None, None),
    ],
)
def test_line_tells_its_kind_its_size_and_its_name(name: str, kind: LineKind, tokens: int | None, told: str) -> None:
    fact = read_plain_observation(PLAIN[name])
    assert fact is not None
    assert (fact.kind, fact.tokens, fact.name, fact.reading_version) == (kind, tokens, told, READING_VERSION)


def test_answer_that_the_client_makes_when_a_session_is_resumed_has_a_name() -> None:
    said = {"model": "<synthetic>", "content": [{"type": "text", "text": "No response requested."}]}
    fact = read_slowly(write("assistant", ANSWER | said), keeps_text=False)
    assert (fact.kind, fact.name) == (LineKind.OTHER, "no response")


def name_kinds(text: str) -> set[LineKind]:
    """Of a user's line with this text, as text or as a block, with and without words."""
    kinds = set()
    for content in (text, [{"type": "text", "text": text}]):
        raw = write("user", {"role": "user", "content": content})
        for keeps_text in (False, True):
            fact = read_plain_observation(raw, keeps_text=keeps_text) or read_slowly(raw, keeps_text=keeps_text)
            kinds.add(fact.kind)
    return kinds


@pytest.mark.parametrize(
    "tag", ["command-name", "local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr"]
)
def test_clients_own_commands_and_what_they_print_begin_no_turn(tag: str) -> None:
    assert name_kinds(f"<{tag}>/exit</{tag}>") == {LineKind.OTHER}


def test_command_that_asks_the_model_begins_a_turn() -> None:
    assert name_kinds(
        "<command-message>review is running…</command-message>\n<command-name>/review</command-name>"
    ) == {LineKind.PROMPT}


_VALUES = st.none() | st.booleans() | st.integers(-2, 5) | st.sampled_from(["", "user", "assistant", "x", "2026-05-01"])
_BLOCKS = st.dictionaries(
    st.sampled_from(["type", "text", "thinking", "tool_use_id", "id", "name", "input"]),
    st.sampled_from(["text", "thinking", "tool_result", "tool_use", "image", ""]) | _VALUES,
)
_MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "role": _VALUES,
        "id": _VALUES,
        "model": _VALUES,
        "content": st.lists(_BLOCKS | _VALUES, max_size=3) | _VALUES,
        "stop_reason": _VALUES,
        "usage": st.just(USAGE) | st.dictionaries(st.sampled_from(sorted(USAGE)), _VALUES),
    },
)


@given(
    st.sampled_from(["user", "assistant", "system"]),
    _MESSAGES | _VALUES,
    st.dictionaries(st.sampled_from(sorted(LINE)), _VALUES),
)
def test_any_line_reads_the_same_either_way(line_type: str, message: object, fields: dict[str, object]) -> None:
    raw = write(line_type, message, **fields)
    for keeps_text in (False, True):
        fact = read_plain_observation(raw, keeps_text=keeps_text)
        assert fact is None or fact == read_slowly(raw, keeps_text=keeps_text)
