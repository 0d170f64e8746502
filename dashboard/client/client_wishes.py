"""What Plimsoll wants to stand in Claude Code's settings: hooks, a status line, telemetry."""

import shlex
import sys
from pathlib import Path
from urllib.parse import urlsplit

from dashboard.client.client_settings import Wanted
from dashboard.client.hook_forwarder import EVENTS
from dashboard.environment import is_loopback

HOOK_TIMEOUT_SECONDS = 5
STATUS_EVERY_SECONDS = 10


def find_program() -> list[str]:
    """How the client starts us, whatever its own path and folder are."""
    script = Path(sys.executable).with_name("plimsoll")
    return [str(script)] if script.is_file() else [sys.executable, "-P", "-m", "dashboard.console"]


def list_wishes(url: str, key: str) -> Wanted:
    program = find_program()
    hook = {"type": "command", "command": shlex.join([*program, "hook"]), "timeout": HOOK_TIMEOUT_SECONDS}
    return Wanted(
        hooks={event: {"hooks": [hook]} for event in EVENTS},
        status_line={
            "type": "command",
            "command": shlex.join([*program, "statusline"]),
            # The client asks anew when something happens; a cache goes cold while nothing does.
            "refreshInterval": STATUS_EVERY_SECONDS,
        },
        variables={
            "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
            "OTEL_METRICS_EXPORTER": "otlp",
            "OTEL_LOGS_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            # A value without a space needs no escapes on its way through the environment.
            "OTEL_EXPORTER_OTLP_HEADERS": f"X-Plimsoll-Key={key}",
        },
    )


def is_safe_address(url: str) -> bool:
    """An address that may be sent a key: https, or plain http on this machine alone."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    is_plain = not (parts.query or parts.fragment or "@" in parts.netloc)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    return bool(host) and port != 0 and is_plain and is_safe


def is_of_a_project(path: Path, home: Path) -> bool:
    """Settings in a project's folder are shared with everybody who works on it: no address or key goes there."""
    return path.parent.name == ".claude" and path.parent.resolve() != home.resolve()
