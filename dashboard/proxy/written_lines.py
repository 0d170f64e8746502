"""For clients that keep no transcript: the lines one would have, written from what passed. No Django here.

A line is named after everything said up to it, so a message that is sent again with every request is one line.
"""

from datetime import UTC, datetime
from uuid import UUID

from compaction.prompt.request import write_json
from dashboard.ingest.observed import ObservedLine, Piece, Rules
from dashboard.ingest.transcripts import prepare
from dashboard.proxy.conversations import chain_marks, mark_answer, mark_message
from dashboard.proxy.prompts import Prompt
from dashboard.proxy.responses import Reply
from dashboard.proxy.wire import Exchange


def write_lines(
    prompt: Prompt, reply: Reply, exchange: Exchange, *, session_id: str, rules: Rules, is_known: bool
) -> tuple[ObservedLine, ...]:
    """What is new in this call: the messages behind the last answer, and the answer. Of a conversation that is not
    known yet, all of it; what was said before its time has no time."""
    messages = prompt.request.messages
    marks = [*map(mark_message, messages), mark_answer(reply.content)]
    names = [str(UUID(bytes=link)) for link in chain_marks(session_id, marks)]
    answers = [place for place, message in enumerate(messages) if message.role == "assistant"]
    fresh_from = answers[-1] + 1 if answers else 0
    asked_at, answered_at = _spell(exchange.started_at), _spell(exchange.started_at + exchange.duration_seconds)
    lines = []
    for place, message in enumerate(messages):
        if (place < fresh_from and is_known) or message.role == "system":
            continue
        head = _head("assistant" if message.role == "assistant" else "user", names, place, session_id)
        time = {"timestamp": asked_at} if place >= fresh_from else {}
        lines.append(head | time | {"message": {"role": message.role, "content": list(message.blocks)}})
    if reply.is_whole:
        head = _head("assistant", names, len(messages), session_id)
        told = _tell_answer(reply, exchange)
        lines.append(head | {"timestamp": answered_at} | told)
    data = b"".join(write_json(line).encode("utf-8", "replace") + b"\n" for line in lines)
    prepared = prepare(Piece(data, "proxy", session_id=session_id), rules)
    return tuple(line for session in prepared.sessions for line in session.lines)


def _head(line_type: str, names: list[str], place: int, session_id: str) -> dict[str, object]:
    parent = names[place - 1] if place else None
    return {"type": line_type, "uuid": names[place], "parentUuid": parent, "sessionId": session_id}


def _tell_answer(reply: Reply, exchange: Exchange) -> dict[str, object]:
    usage = reply.usage
    message: dict[str, object] = {
        "id": reply.message_id,
        "role": "assistant",
        "model": reply.model,
        "content": reply.content,
        "stop_reason": reply.stop_reason,
    }
    if usage is not None:
        message["usage"] = {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_input_tokens": usage.cache_read_tokens,
            "cache_creation_input_tokens": usage.cache_creation_tokens,
            "cache_creation": {
                "ephemeral_5m_input_tokens": usage.cache_creation_5m_tokens,
                "ephemeral_1h_input_tokens": usage.cache_creation_1h_tokens,
            },
        }
    return {"message": message, "requestId": exchange.response_headers.get("request-id")}


def _spell(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
