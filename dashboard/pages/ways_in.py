"""The ways in: what to type for each of them on this very server, what it can show, and whether something came."""

from dataclasses import dataclass, replace

from django.conf import settings

from dashboard import access
from dashboard.access import Actor
from dashboard.environment import find_transcript_folders
from dashboard.models import Team
from dashboard.own_commands import list_secret_variables, name_program, spell_command

NO_KEY = "YOUR_KEY"
INSTALL = "uv tool install ."  # no package index has Plimsoll: it comes from a checkout
LOOKED_AT = 500  # sessions, the newest: whether a way works shows in what came last


@dataclass(frozen=True)
class Way:
    """`sources` are the names under which sessions remember that they came this way. `install`: what puts the program
    of the snippet on another machine, once, in a checkout of Plimsoll."""

    name: str
    title: str
    words: str
    snippet: str
    sources: tuple[str, ...]
    shows: str
    lacks: str
    needs_key: bool = True
    install: str = ""


@dataclass(frozen=True)
class Arrival:
    """When it came is not known: a session remembers its ways, and the time of what came last by any of them."""

    way: str
    has_come: bool


def list_ways(url: str, key: str, *, is_local: bool) -> list[Way]:
    """With the address of this server and the key in every snippet; on one's own machine with the program's path."""
    key = key or NO_KEY
    program, install = name_program(is_local=is_local), "" if is_local else INSTALL
    ways = [
        _push(url, key, program, install),
        _otlp(url, key),
        _connect_here() if is_local else _hooks(url, key, install),
        _proxy(url, key, is_local=is_local),
        _api(url, key),
    ]
    return [_follow(), *ways] if is_local else ways


def pick_recommended(ways: list[Way], *, is_local: bool) -> list[Way]:
    """Return what to set up first: on one's own machine its transcripts, then the client; on a server a laptop's."""
    names = ("follow", "hooks") if is_local else ("push",)
    return [way for way in ways if way.name in names]


def find_arrivals(actor: Actor, team: Team, ways: list[Way]) -> list[Arrival]:
    """One query over the newest sessions."""
    seen = list_seen_sources(actor, team)
    return [Arrival(way.name, not seen.isdisjoint(way.sources)) for way in ways]


def list_seen_sources(actor: Actor, team: Team) -> set[str]:
    """Return the sources of the newest sessions."""
    newest = access.sessions(actor).filter(team=team).order_by("-last_at", "-id")
    return {source for sources in newest.values_list("sources", flat=True)[:LOOKED_AT] for source in sources}


def _follow() -> Way:
    return Way(
        name="follow",
        title="Follow this machine",
        words=" ".join((_say_followed(), *_say_secrets())),
        snippet=spell_command("import", "~/.claude", is_local=True),
        sources=("follow", "import", "upload"),
        shows="context, calls, cache breaks, compactions and what they lost, text",
        lacks="requests of older clients: some cache breaks stay unexplained",
        needs_key=False,
    )


def _say_followed() -> str:
    roots = settings.FOLLOW_ROOTS
    if not roots:
        return (
            "Following is off on this server (PLIMSOLL_FOLLOW). Run the command to import existing transcripts; run "
            "it again to import new lines."
        )
    whose = "Claude Code transcripts"
    if list(roots) != find_transcript_folders():
        whose = f"transcripts in {' and '.join(map(str, roots))}"
    return f"No action needed: while Plimsoll is running, it follows {whose}. Run the command to import older history."


def _say_secrets() -> list[str]:
    needed = list_secret_variables()
    return [f"First set {' and '.join(needed)} in the terminal to the same value as on this server."] if needed else []


def _push(url: str, key: str, program: str, install: str) -> Way:
    return Way(
        name="push",
        title="Push from a laptop",
        words="Uploads transcripts as they grow. Secrets are redacted before anything leaves the machine. With "
        "--metrics-only, no conversation text is sent.",
        snippet=f"export PLIMSOLL_KEY={key}\n{program} watch --server {url}",
        sources=("push",),
        shows="the same as following; text only if the team stores content",
        lacks="requests of older clients",
        install=install,
    )


def _otlp(url: str, key: str) -> Way:
    return Way(
        name="otlp",
        title="OpenTelemetry",
        words="Environment variables for Claude Code, or for any agent that follows the GenAI semantic conventions.",
        snippet="\n".join(
            (
                "export CLAUDE_CODE_ENABLE_TELEMETRY=1",
                "export OTEL_METRICS_EXPORTER=otlp OTEL_LOGS_EXPORTER=otlp",
                "export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
                f"export OTEL_EXPORTER_OTLP_ENDPOINT={url}",
                f'export OTEL_EXPORTER_OTLP_HEADERS="X-Plimsoll-Key={key}"',
            )
        ),
        sources=("otlp",),
        shows="calls, tokens, the client's own cost, failed compactions",
        lacks="text, what compactions lost, causes of cache breaks",
    )


def _connect_here() -> Way:
    """On this machine, the command finds the address and makes its key by itself."""
    snippet = spell_command("connect", "claude-code", "--write", is_local=True, with_address=True)
    return replace(_hooks("", "", ""), snippet=snippet, needs_key=False)


def _hooks(url: str, key: str, install: str) -> Way:
    command = ("connect", "claude-code", "--url", url, "--key", key, "--write")
    return Way(
        name="hooks",
        title="Hooks and status line",
        words="Adds hooks and a status line to your Claude Code settings. Without --write the command only shows the "
        "changes; --undo removes them.",
        snippet=spell_command(*command, is_local=False),
        sources=("hooks", "statusline"),
        shows="the client's window and context, session ends, compaction starts",
        lacks="individual calls: combine it with another source",
        install=install,
    )


def _proxy(url: str, key: str, *, is_local: bool) -> Way:
    base = f"export ANTHROPIC_BASE_URL={url}/proxy"
    header = f'export ANTHROPIC_CUSTOM_HEADERS="X-Plimsoll-Key: {key}"'
    return Way(
        name="proxy",
        title="Proxy",
        words="Forwards every call byte for byte. Your API key is passed through and never stored.",
        snippet=f"{base}\nclaude" if is_local else f"{base}\n{header}\nclaude",
        sources=("proxy",),
        shows="causes of cache breaks with a request diff; failed and partial calls",
        lacks="activity on the machine between calls",
        needs_key=not is_local,
    )


def _api(url: str, key: str) -> Way:
    return Way(
        name="api",
        title="JSON API",
        words="Upload transcript lines from your own program, in any number and any order. The example sends the "
        "latest transcript of this machine. Agents without transcripts send calls, messages and compactions to "
        "/api/v1/ingest/items.",
        snippet=f"curl {url}/api/v1/ingest/transcripts \\\n  -H 'Authorization: Bearer {key}' \\\n"
        "  -H 'Content-Type: application/x-ndjson' \\\n"
        '  --data-binary @"$(ls -t ~/.claude/projects/*/*.jsonl | head -n 1)"',
        sources=("api",),
        shows="everything in the uploaded lines; any agent with /api/v1/ingest/items",
        lacks="anything the sender omits",
    )
