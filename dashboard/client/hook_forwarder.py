"""`plimsoll hook`: a command hook of Claude Code. Keeps what a hook says and lets a child of its own send it.

It prints nothing and ends well whatever happens: words of a hook, and how it ends, would change what the client does.
"""

import json
import os
import sys
import time

from dashboard.client.background_sending import send_in_background
from dashboard.client.client_folder import find_folder, note_problem, read_connection
from dashboard.client.spool import TooLarge, put_event

USAGE = """\
usage: plimsoll hook < JSON

A command hook for Claude Code: forwards its input in the background to the server set up with `plimsoll connect`.
Without a server, events are discarded; while the server is unreachable, they are queued on disk. Always exits with 0.
"""
LARGEST_INPUT_BYTES = 16 * 1024 * 1024
# What the server reads; nothing else leaves the machine: no prompt, no tool call, no answer.
_ALWAYS = ("session_id", "cwd", "prompt_id", "hook_event_name", "agent_id", "agent_type")
EVENTS = {
    "SessionStart": (
        "source",
        "model",
        "seconds_since_last_response",
        "context_tokens",
        "prompt_cache_likely_expired",
        "estimated_cache_write_usd",
    ),
    "UserPromptSubmit": (),
    "PreCompact": ("trigger",),
    "PostCompact": ("trigger", "compact_summary"),
    "Stop": (),
    "SubagentStop": (),
    "SessionEnd": ("reason",),
}


def main(arguments: list[str]) -> int:
    if arguments or sys.stdin.isatty():
        sys.stdout.write(USAGE)
        return 0
    folder = find_folder()
    try:
        _forward(folder, sys.stdin.buffer.read(LARGEST_INPUT_BYTES))
    except Exception as error:  # noqa: BLE001 (a hook that fails would stop its client)
        note_problem(folder, f"a hook was not kept: {type(error).__name__}: {error}")
    return 0


def _forward(folder: str, data: bytes) -> None:
    if read_connection(folder) is None:
        return
    told = json.loads(data)
    kept = pick_fields(told) if isinstance(told, dict) else None
    if kept is None:
        return
    now_ns = time.time_ns()
    name = f"{now_ns:020d}-{os.getpid()}"
    kept |= {"plimsoll_event_id": name, "plimsoll_at": now_ns / 1e9}
    try:
        put_event(folder, f"{name}.hooks", _spell(kept))
    except TooLarge:
        kept.pop("compact_summary", None)
        put_event(folder, f"{name}.hooks", _spell(kept))
    send_in_background(folder)


def pick_fields(told: dict[str, object]) -> dict[str, object] | None:
    """None for an event that no server asks for."""
    name = told.get("hook_event_name")
    wanted = EVENTS.get(name) if isinstance(name, str) else None
    if wanted is None or not isinstance(told.get("session_id"), str):
        return None
    return {field: told[field] for field in (*_ALWAYS, *wanted) if told.get(field) is not None}


def _spell(kept: dict[str, object]) -> bytes:
    return json.dumps(kept, separators=(",", ":")).encode()
