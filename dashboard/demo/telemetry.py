"""What a client's telemetry, hooks and status line say of a talk, as the bytes that arrive."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from dashboard.demo.talks import VERSION, Happened, Talk

_RESOURCE = {"service.name": "claude-code", "service.version": VERSION, "os.type": "linux"}


def export_events(session_id: str, happened: Iterable[Happened]) -> bytes:
    """An export of logs in OTLP/JSON."""
    records = [_spell_record(session_id, number, each) for number, each in enumerate(happened, 1)]
    scoped = {"scope": {"name": "com.anthropic.claude_code.events"}, "logRecords": records}
    resource = {"attributes": _list_attributes(_RESOURCE)}
    return json.dumps({"resourceLogs": [{"resource": resource, "scopeLogs": [scoped]}]}).encode()


def _spell_record(session_id: str, number: int, each: Happened) -> dict[str, Any]:
    nanoseconds = str(int(each.at.timestamp() * 1000) * 1_000_000)
    own = {"event.name": each.name, "event.sequence": number, "session.id": session_id}
    return {
        "timeUnixNano": nanoseconds,
        "observedTimeUnixNano": nanoseconds,
        "body": {"stringValue": f"claude_code.{each.name}"},
        "attributes": _list_attributes(own | dict(each.told)),
    }


def _list_attributes(told: Mapping[str, object]) -> list[dict[str, Any]]:
    def spell(value: object) -> dict[str, Any]:
        return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}

    return [{"key": name, "value": spell(value)} for name, value in told.items()]


def write_start_hook(session_id: str, folder: str, at: datetime) -> bytes:
    """It names the folder, which neither telemetry nor the proxy knows."""
    told = {
        "hook_event_name": "SessionStart",
        "session_id": session_id,
        "cwd": folder,
        "source": "startup",
        "plimsoll_at": at.isoformat(),
    }
    return json.dumps(told).encode()


def write_status(talk: Talk, *, window_tokens: int, reasons: tuple[str, ...] = ()) -> bytes:
    """The last status line of a talk; with reasons it also says why the last call missed the cache."""
    cache: dict[str, Any] = {"warm": True, "expires_at": (talk.now + timedelta(minutes=5)).isoformat()}
    if reasons:
        cache |= {"last_miss_at": talk.now.isoformat(), "last_miss_cause": {"causes": list(reasons)}}
    usage = {"input_tokens": 4, "cache_read_input_tokens": talk.cached_tokens, "output_tokens": talk.new_tokens}
    limits = {"five_hour": {"used_percentage": 41.0, "resets_at": (talk.now + timedelta(hours=2)).timestamp()}}
    told = {
        "session_id": talk.session_id,
        "model": {"id": talk.model},
        "version": talk.version,
        "context_window": {"context_window_size": window_tokens, "current_usage": usage},
        "prompt_cache": cache,
        "rate_limits": limits,
        "plimsoll_at": talk.now.isoformat(),
    }
    return json.dumps(told).encode()
