"""Secrets that lie across the place where a text is cut, and every way in on which texts are cut.

A way makes of many texts what would be stored of them; `cuts` are the lengths at which it cuts.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import msgspec

from compaction.transcripts.subagents import AgentMeta
from dashboard.ingest.agent_facts import prepare_items
from dashboard.ingest.client_hooks import prepare_hooks
from dashboard.ingest.client_status import prepare_statuses
from dashboard.ingest.observed import Piece, Prepared, Rules
from dashboard.ingest.otlp.preparing import Form, Signal, prepare_export
from dashboard.ingest.pushed_lines import make_push, read_push, settle_push, write_push
from dashboard.ingest.transcripts import prepare, prepare_agent_meta
from dashboard.proxy.reports import Report, Reporter
from tests.dashboard.ingest.conversation import Conversation
from tests.dashboard.ingest.otlp.exports import RESOURCE, event, logs, metrics, point, span, traces
from tests.dashboard.ingest.planted_secrets import PLANTED, Planted, some
from tests.dashboard.proxy.talking import Client, make_usage, stream_answer

OWN_PATTERNS = {"berth": r"berth-\d{16}-quay"}
RULES = Rules(keeps_content=True, digest_key=b"k" * 32, own_patterns=OWN_PATTERNS)
NOW = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
LOOKED_AT = 64 * 1024  # of a text of which the beginning is kept
_BERTH = f"berth-{some('0123456789', 16)}-quay"
# Short ones are no longer than what may be left of a mark.
SECRETS = (*(planted for planted in PLANTED if len(planted.secret) >= 20), Planted("berth", _BERTH, _BERTH))
Stored = Prepared | Report


FILLERS = ("the tide is low and ", " ")  # of the second nothing is left where a text is put on one line


def lay_across(planted: Planted, cut: int, filler: str = FILLERS[0]) -> str:
    """A text whose cut goes through the middle of the secret."""
    before = cut - planted.text.index(planted.secret) - len(planted.secret) // 2
    return (filler * (before // len(filler) + 1))[: max(0, before - 1)] + " " + planted.text + " is all."


def find_halves(told: str, secrets: tuple[Planted, ...] = SECRETS) -> list[str]:
    """Forms of which the first twelve characters were left."""
    return [planted.form for planted in secrets if planted.secret[:12] in told]


@dataclass(frozen=True)
class Way:
    cuts: tuple[int, ...]
    send: Callable[[list[str]], Iterator[Stored]]


def spell(stored: Stored) -> str:
    """Facts and content as they would be written down. A whole request is written only where nothing is found in it."""
    stored = replace(stored, request=None) if isinstance(stored, Report) else stored
    return json.dumps(msgspec.to_builtins(stored, builtin_types=(bytes,)), default=bytes.decode, ensure_ascii=False)


def _write_transcript(texts: list[str]) -> Conversation:
    talk = Conversation()
    for number, text in enumerate(texts):
        talk.ask(text)
        talk.write("user", message={"role": "user", "content": [{"type": "text", "text": text}]})
        talk.note("summary", summary=text)
        talk.note("ai-title", aiTitle=text)
        talk.write("attachment", attachment={"type": "file", "filename": text, "content": "x"})
        talk.write("user", cwd=text, gitBranch=text, version=text, message={"role": "user", "content": "x"})
        talk.write("user", isSidechain=True, agentId=text, message={"role": "user", "content": "x"})
        talk.write("system", subtype="api_error", error={"status": 500, "error": {"error": {"type": text}}})
        talk.note("api-request-shape", shapeHash=f"h{number}", shape={"system": [text], "tools": [{"name": text}]})
    return talk


def _send_transcript(texts: list[str]) -> Iterator[Prepared]:
    talk = _write_transcript(texts)
    yield prepare(Piece(talk.data, "harbour.jsonl", talk.session_id), RULES)


def _send_push(texts: list[str]) -> Iterator[Prepared]:
    """From a machine that does not know the team's own patterns yet."""
    talk = _write_transcript(texts)
    prepared = prepare(Piece(talk.data, "harbour.jsonl", talk.session_id), Rules(True, b"k" * 32))
    yield settle_push(read_push(write_push(make_push(prepared))), RULES)


def _send_meta(texts: list[str]) -> Iterator[Prepared]:
    for text in texts:
        yield prepare_agent_meta("harbour", text, AgentMeta(agent_type=text, description=text), RULES)


def _send_logs(texts: list[str]) -> Iterator[Prepared]:
    for number, text in enumerate(texts):
        records = [
            event("user_prompt", number, prompt=text),
            event("compaction", number, success="false", error=text, trigger=text),
            event("api_error", number, error=text, agent_id=text),
            event("tool_result", number, tool_name=text, query_source=text),
        ]
        data = json.dumps(logs(*records, resource={**RESOURCE, "service.version": text})).encode()
        yield prepare_export(data, Signal.LOGS, Form.JSON, RULES).prepared


def _send_figures(texts: list[str]) -> Iterator[Prepared]:
    for number, text in enumerate(texts, 1):
        figures = {"gen_ai__usage__input_tokens": 5, "gen_ai__usage__output_tokens": 5}
        semantic = span("chat", 1, 1, number, gen_ai__response__finish_reasons=[text], **figures)
        own = span(
            "claude_code.llm_request", 1, 1, number + 10_000, input_tokens=5, output_tokens=5, stop_reason=text,
            session__id="harbour", agent_id=text,
        )  # fmt: skip
        yield prepare_export(json.dumps(traces(semantic, own)).encode(), Signal.TRACES, Form.JSON, RULES).prepared
        counted = metrics("claude_code.cost.usage", point(1, 0.5, **{"agent.id": text}))
        yield prepare_export(json.dumps(counted).encode(), Signal.METRICS, Form.JSON, RULES).prepared


def _send_hooks(texts: list[str]) -> Iterator[Prepared]:
    for number, text in enumerate(texts):
        hooks: list[dict[str, object]] = [
            {"hook_event_name": "SessionStart", "cwd": text, "source": text},
            {"hook_event_name": "SessionEnd", "reason": text},
            {"hook_event_name": "PreCompact", "trigger": text, "agent_id": text},
            {"hook_event_name": "PostCompact", "trigger": "auto", "compact_summary": text},
        ]
        data = json.dumps([{"session_id": f"s{number}", **hook} for hook in hooks]).encode()
        yield prepare_hooks(data, RULES, arrived_at=NOW)


def _send_statuses(texts: list[str]) -> Iterator[Prepared]:
    for number, text in enumerate(texts):
        missed = {"last_miss_at": NOW.timestamp() - 60, "last_miss_cause": {"causes": [text]}}
        limits = {text: {"used_percentage": 5}}
        status = {"session_id": f"s{number}", "version": text, "prompt_cache": missed, "rate_limits": limits}
        yield prepare_statuses(json.dumps(status).encode(), RULES, arrived_at=NOW)


def _send_items(texts: list[str]) -> Iterator[Prepared]:
    """Longer names than these are refused, so nothing of them is cut before it is stored."""
    at = NOW.isoformat()
    usage = {"input_tokens": 1, "output_tokens": 1}
    for number, text in enumerate(texts):
        short = text if len(text) <= 300 else "short"
        items: list[dict[str, object]] = [
            {"type": "session", "at": at, "title": short, "folder": short, "branch": short, "version": short},
            {"type": "message", "id": f"m{number}", "at": at, "role": "user", "content": text},
            {"type": "compaction", "id": f"k{number}", "at": at, "failure": short},
            {
                "type": "call", "id": f"c{number}", "at": at, "model": "m", "usage": usage, "purpose": short,
                "stop_reason": short,
            },
        ]  # fmt: skip
        read = prepare_items([msgspec.Raw(json.dumps({"session": "s", **item}).encode()) for item in items], RULES)
        assert not read.refusals
        yield read.prepared


def _send_through_proxy(texts: list[str]) -> Iterator[Report]:
    for number, text in enumerate(texts):
        for headers in ({"x-claude-code-session-id": f"s{number}", "x-claude-code-agent-id": text}, {}):
            told = Reporter().read(Client(headers=headers, messages=[]).call(text, f"msg_{number}"), RULES)
            assert told is not None
            yield told
        named = Client(headers={"x-claude-code-session-id": f"s{number}"})
        error = {"type": "error", "error": {"type": text, "message": text}}
        refused = named.send(json.dumps(error).encode(), "m", status=400, response_headers={})
        cut = named.call("More", "m", events=[*stream_answer("m", make_usage(read=5))[:3], error])
        prompt = named.call(text, f"msg_{number}")
        for exchange in (refused, cut, prompt):
            told = Reporter().read(exchange, RULES)
            assert told is not None
            yield told


WAYS = {
    "transcript": Way((120, 1_000, LOOKED_AT), _send_transcript),
    "push": Way((120, 1_000, LOOKED_AT), _send_push),
    "sub-agent's description": Way((200, 300), _send_meta),
    "telemetry": Way((120, 200, 1_000, LOOKED_AT), _send_logs),
    "spans and metrics": Way((60, 200), _send_figures),
    "hooks": Way((20, 40, 200, 1_000, LOOKED_AT, 2**20), _send_hooks),
    "status line": Way((40, 60, 200), _send_statuses),
    "items of any agent": Way((60, 120, 1_000), _send_items),
    "proxy": Way((120, 200, 1_000, LOOKED_AT), _send_through_proxy),
}
