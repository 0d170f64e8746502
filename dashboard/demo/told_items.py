"""A conversation as an agent of another kind tells of it: items of sessions, messages, calls and deletions."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from dashboard.demo.fake_api import DELETED_TOKENS
from dashboard.demo.proxied import Client, Json, Sent
from dashboard.ingest.agent_items import RawItem, read_batch


def tell_items(client: Client, *, title: str) -> list[RawItem]:
    """As they arrive in one batch."""
    return read_batch(msgspec.json.encode({"items": list(_spell_items(client, title))}))


def _spell_items(client: Client, title: str) -> Iterator[Json]:
    began_at = _spell_time(client.sent[0])
    yield {
        "type": "session",
        "session": client.session_id,
        "at": began_at,
        "title": title,
        "folder": client.project.folder,
        "branch": client.project.branch,
    }
    parent = None
    for sent in client.sent:
        asked, answered = f"{sent.message_id}-asked", f"{sent.message_id}-answered"
        yield _spell_message(client, sent, asked, parent) | sent.said
        if sent.deleted_count:
            yield _spell_deletion(client, sent)
        yield _spell_call(client, sent)
        told = _spell_message(client, sent, answered, asked, seconds=sent.duration_seconds)
        yield told | {"role": "assistant", "content": sent.reply}
        parent = answered


def _spell_message(client: Client, sent: Sent, name: str, parent: str | None, *, seconds: float = 0) -> Json:
    at = _spell_time(sent, seconds=seconds)
    return {"type": "message", "session": client.session_id, "id": name, "parent": parent, "at": at}


def _spell_deletion(client: Client, sent: Sent) -> Json:
    told = {"type": "compaction", "kind": "deletion", "session": client.session_id, "id": f"{sent.message_id}-deleted"}
    saved_tokens = DELETED_TOKENS * sent.deleted_count
    return told | {"at": _spell_time(sent), "cleared_count": sent.deleted_count, "saved_tokens": saved_tokens}


def _spell_call(client: Client, sent: Sent) -> Json:
    return {
        "type": "call",
        "session": client.session_id,
        "id": sent.message_id,
        "message_id": sent.message_id,
        "at": _spell_time(sent, seconds=sent.duration_seconds),
        "duration_seconds": sent.duration_seconds,
        "model": client.model,
        "usage": sent.usage | {"output_tokens": sent.output_tokens},
        "stop_reason": "end_turn",
        "request": sent.body,
        "client_state": sent.state,
    }


def _spell_time(sent: Sent, *, seconds: float = 0) -> str:
    return (datetime.fromtimestamp(sent.at, UTC) + timedelta(seconds=seconds)).isoformat()
