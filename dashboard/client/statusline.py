"""`plimsoll statusline`: the status JSON of Claude Code on stdin, a gauge on stdout, the rest in the background."""

import json
import os
import sys
import time
import zlib
from typing import Any

from dashboard.client.background_sending import send_in_background
from dashboard.client.client_folder import (
    find_folder,
    make_folder,
    name_file,
    note_problem,
    read_connection,
    read_json,
    write_file,
)
from dashboard.client.spool import put_event
from dashboard.client.status_gauge import StatusLines, Surface, draw_gauge
from dashboard.client.status_values import StatusValues, read_status
from dashboard.version import VERSION

USAGE = """\
usage: plimsoll statusline < JSON

A status line for Claude Code: how full the window is, its four thresholds, how long the cache stays warm.
NO_COLOR=1 turns colours off. With a server (`plimsoll connect`), the values are forwarded in the background.
"""
LARGEST_INPUT_BYTES = 4 * 1024 * 1024
MEMORY = "statusline.json"
_REMEMBERED = 40
_LINE_NAMES = {"window", "limit", "warning", "error", "auto", "blocking"}
# The client's variables that move a line (compaction.context.policy).
VARIABLES = (
    "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
    "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "DISABLE_AUTO_COMPACT",
    "DISABLE_COMPACT",
)


def main(arguments: list[str]) -> int:
    if arguments or sys.stdin.isatty():
        sys.stdout.write(USAGE)
        return 0
    folder = find_folder()
    line = ""
    values = None
    memory: dict[str, Any] = {}
    try:
        values = _read_input(sys.stdin.buffer.read(LARGEST_INPUT_BYTES))
        memory = read_json(name_file(folder, MEMORY))
        if values is not None:
            lines = recall_lines(values, memory, folder)
            line = draw_gauge(values, lines, _find_surface(), now=time.time())
    except Exception as error:  # noqa: BLE001 (the client shows whatever else would be printed)
        note_problem(folder, f"no status line: {type(error).__name__}: {error}")
    sys.stdout.buffer.write(f"{line}\n".encode())
    sys.stdout.buffer.flush()
    try:
        if values is not None:
            _forward(folder, values, memory)
    except Exception as error:  # noqa: BLE001 (as above)
        note_problem(folder, f"a status was not kept: {type(error).__name__}: {error}")
    return 0


def _read_input(data: bytes) -> StatusValues | None:
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return read_status(told) if isinstance(told, dict) else None


def recall_lines(values: StatusValues, memory: dict[str, Any], folder: str) -> StatusLines | None:
    """Drawing them loads the engine, which takes longer than all the rest: done once for a model and its settings."""
    settings = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    key = json.dumps([VERSION, values.model, values.client_version, values.window_tokens, settings])
    kept = memory.get("lines")
    known = kept if isinstance(kept, dict) else {}
    if key not in known:
        from dashboard.client.status_lines import draw_status_lines  # noqa: PLC0415

        known[key] = draw_status_lines(values, settings)
        _remember(folder, memory, "lines", known)
    found = known[key]
    return found if isinstance(found, dict) and found.keys() >= _LINE_NAMES else None


def _remember(folder: str, memory: dict[str, Any], name: str, known: dict[str, Any]) -> None:
    memory[name] = dict(list(known.items())[-_REMEMBERED:])
    try:
        make_folder(folder)
        write_file(name_file(folder, MEMORY), json.dumps(memory, separators=(",", ":")).encode())
    except OSError as error:
        note_problem(folder, f"not remembered: {error}")  # the line is shown all the same


def _find_surface() -> Surface:
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isascii() and columns.isdigit() and 0 < len(columns) < 5 else 80
    has_colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return Surface(width, has_colour, is_ascii=encoding != "utf8")


def _forward(folder: str, values: StatusValues, memory: dict[str, Any]) -> None:
    """Only what changed, and what waits for the same session is replaced: the sender takes its time."""
    if not values.session_id or read_connection(folder) is None:
        return
    event = spell_event(values)
    data = json.dumps(event, separators=(",", ":")).encode()
    session = f"{zlib.crc32(values.session_id.encode('utf-8', 'replace')):08x}"
    kept = memory.get("forwarded")
    known = kept if isinstance(kept, dict) else {}
    if known.get(session) == zlib.crc32(data):
        return
    missed = zlib.crc32(json.dumps(event["prompt_cache"].get("last_miss_at")).encode())
    event["plimsoll_at"] = time.time()
    put_event(folder, f"{session}-{missed:08x}.status", json.dumps(event, separators=(",", ":")).encode())
    known.pop(session, None)
    known[session] = zlib.crc32(data)
    _remember(folder, memory, "forwarded", known)
    send_in_background(folder)


_CACHE_FIELDS = ("warm", "ttl", "expires_at", "requests", "misses", "last_miss_at", "last_miss_cause")


def spell_event(values: StatusValues) -> dict[str, Any]:
    """What is forwarded, in the client's own shape: nothing of folders, branches or people."""
    return {
        "session_id": values.session_id,
        "model": values.model,
        "version": values.client_version,
        "context_window": {
            "context_window_size": values.window_tokens,
            "current_usage": None if values.used_tokens is None else {"input_tokens": values.used_tokens},
        },
        "prompt_cache": {name: values.cache[name] for name in _CACHE_FIELDS if values.cache.get(name) is not None},
        "rate_limits": values.rate_limits,
        "cost": {"total_cost_usd": values.cost_usd},
    }
