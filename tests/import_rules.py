"""Who may import whom: the table, and the reader that holds source files against it.

A rule about a place that does not exist yet is in the table already; it bites when the first file appears.
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("dashboard", "compaction")
DECODERS = tuple(
    f"dashboard.ingest.{name}"
    for name in (
        *("otlp", "transcripts", "client_hooks", "client_status", "client_json", "hostile_json"),
        *("agent_items", "agent_facts", "prompt_shapes", "pushed_lines"),
        *("observed", "redaction", "segments", "picture", "drawn"),
    )
)
# What a coding agent starts and waits for: it loads little, and nothing of Django.
CLIENT_PROGRAMS = "dashboard.client"
PUSH = "dashboard.push"
# The writer of sessions, and the parts it is made of.
RECORD = tuple(
    f"dashboard.ingest.{name}"
    for name in ("record", "new_sessions", "counting", "redaction_counts", "rows", "stored_lines", "turns")
)

PROXY_PASSING = tuple(
    f"dashboard.proxy.{name}"
    for name in ("forwarder", "passage", "callers", "tap", "feed", "journal", "private_socket", "wire")
)
PROXY_READING = tuple(
    f"dashboard.proxy.{name}"
    for name in (
        "conversation_owners",
        "conversations",
        "inbox",
        "journal",
        "journal_replay",
        "message_prints",
        "private_socket",
        "prompts",
        "reports",
        "responses",
        "side_calls",
        "threads",
        "wire",
    )
)


@dataclass(frozen=True)
class Door:
    """A place (dotted prefixes) and what it must not import; `only` closes the list of what it may."""

    places: tuple[str, ...]
    never: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None  # besides the standard library
    only_here: tuple[str, ...] | None = None  # of our own packages; foreign libraries stay free


# Packages of the engine: each may import those before it.
FLOORS = ("llm", "transcripts", "context", "prompt", "timeline", "cache", "activity", "compactors")

# fmt: off
DOORS = (
    Door(
        ("compaction",),
        only=("compaction", "genai_prices", "orjson", "msgspec"),
        never=("socket", "ssl", "http", "urllib.request", "subprocess", "asyncio", "sqlite3"),
    ),
    *(
        Door((f"compaction.{floor}",), never=tuple(f"compaction.{above}" for above in FLOORS[place + 1 :]))
        for place, floor in enumerate(FLOORS)
    ),
    # What the extractor selects must not decide what the audit looks for: they share the reading of transcripts alone.
    Door(
        ("compaction.audit",),
        only_here=(
            *("compaction.audit", "compaction.transcripts"),
            *(
                f"compaction.activity.{name}"
                for name in ("tool_calls", "user_messages", "todos", "background_tasks")
            ),
        ),
    ),
    Door(("compaction.compactors",), never=("compaction.audit",)),
    Door(("dashboard.models",), only=("django", "compaction", "dashboard.models")),
    # A later change of live code must neither break a migration nor change what it does.
    Door(("dashboard.migrations",), only=("django", "msgspec", "zstandard", "dashboard.migrations")),
    Door(
        DECODERS,
        only=(
            "opentelemetry",
            "google.protobuf",
            "zstandard",
            "hyperscan",
            "re2",
            "msgspec",
            "compaction",
            "dashboard.session_forecasts",
            "dashboard.session_levels",
            "dashboard.client.status_values",
            *DECODERS,
        ),
    ),
    Door((CLIENT_PROGRAMS,), only=("compaction", "dashboard.version", "dashboard.environment", CLIENT_PROGRAMS)),
    # It runs on developers' machines, without settings and without a database of Django's.
    Door((PUSH,), never=("django", "dashboard.models", "dashboard.settings", "dashboard.views", "dashboard.api")),
    Door(
        RECORD,
        never=("django.http", "requests", "celery"),
        only_here=("dashboard.models", "compaction", *DECODERS, *RECORD),
    ),
    Door(("dashboard.ingest",), never=("dashboard.views", "dashboard.api")),
    Door(("dashboard.jobs",), only_here=("dashboard.models", "dashboard.jobs", "dashboard.celery")),
    Door(
        ("dashboard.runs.start",),
        never=("anthropic",),
        only_here=(
            "dashboard.models",
            "dashboard.access",
            "compaction",
            "dashboard.jobs",
            "dashboard.policies.in_force",
            *(
                f"dashboard.runs.{name}"
                for name in ("change_notes", "choices", "spend", "preview", "endings", "team_settings")
            ),
        ),
    ),
    Door(
        ("dashboard.runs.perform",),
        never=("celery", "dashboard.views", "dashboard.api", "dashboard.runs.start"),
        only_here=(
            "dashboard.models",
            "compaction",
            "dashboard.jobs.run",
            "dashboard.hooks",
            "dashboard.ingest",
            "dashboard.policies.in_force",
            "dashboard.runs",
        ),
    ),
    Door(("dashboard.hooks",), never=("dashboard.views", "dashboard.api", "celery")),
    Door(("dashboard.runs",), never=("dashboard.views", "dashboard.api")),
    Door(
        ("dashboard.live",), never=("dashboard.views", "dashboard.api", "dashboard.ingest", "dashboard.runs", "celery")
    ),
    Door(
        ("dashboard.accounts",),
        only_here=(
            "dashboard.models",
            "dashboard.access",
            "dashboard.jobs",
            "dashboard.accounts",
            "dashboard.kept_query",
            "compaction",
        ),
    ),
    Door(
        ("dashboard.policies",),
        only_here=(
            "dashboard.models",
            "dashboard.access",
            "dashboard.jobs",
            "dashboard.accounts",
            "dashboard.policies",
            "dashboard.kept_query",
            "dashboard.session_forecasts",
            "dashboard.session_levels",
            "dashboard.words",
            "dashboard.ingest.redaction",
            "compaction",
        ),
    ),
    Door(("dashboard.session_forecasts", "dashboard.session_levels"), only=("compaction",)),
    Door(("dashboard.kept_query",), only=("django",)),
    # What stands in the way of a call loads nothing that reads or writes one down.
    Door(PROXY_PASSING, never=("dashboard.ingest", "dashboard.proxy.recorder", "dashboard.proxy.reports")),
    Door(PROXY_READING, never=("django", "dashboard.models", "aiohttp")),
    Door(("dashboard.views",), never=("dashboard.api", "dashboard.ingest.endpoints")),
    Door(("dashboard.api",), never=("dashboard.views", "dashboard.ingest.endpoints")),
    Door(
        ("dashboard.views", "dashboard.api", "dashboard.ingest.endpoints"),
        never=(
            "celery",
            "anthropic",
            "dashboard.celery",
            "dashboard.jobs.perform",
            "dashboard.jobs.task",
            "dashboard.jobs.worker",
            "dashboard.runs.perform",
            "dashboard.runs.claude",
        ),
    ),
    Door(
        ("dashboard.access", "dashboard.pages", "dashboard.charts"),
        never=("dashboard.views", "dashboard.api", "dashboard.ingest.endpoints", "dashboard.runs.perform", "celery"),
    ),
    Door(("dashboard",), never=("django.contrib.admin",)),  # it would go around dashboard.access
)
# fmt: on

# A library that is heavy to import, or whose use must be seen at a glance, has one home.
HOMES = {
    "plotly": "dashboard.charts",
    "anthropic": "dashboard.runs.claude",
    "markdown_it": "dashboard.markdown",
    "genai_prices": "compaction.llm.prices",
    "hyperscan": "dashboard.ingest.redaction.stops",
    "re2": "dashboard.ingest.redaction.own_patterns",
}
HOMES_IN_COMPACTION = {
    "orjson": ("compaction.transcripts.reader",),
}

# Imports inside a function never dodge a cycle. The one reason that counts: a program that starts without waiting.
LATE = {
    "dashboard.cli": "dashboard.management",
    "dashboard.console": "dashboard",
    "dashboard.client.statusline": "dashboard.client.status_lines",
    "dashboard.client.background_sending": "dashboard.client.spool_sender",
    "compaction.llm.prices": "genai_prices",
}


@dataclass(frozen=True)
class Import:
    line: int
    names: tuple[str, ...]  # `from a import b` may mean the module a or the module a.b: both are named


def find_violations(root: Path) -> list[str]:
    return [
        f"{path.relative_to(root)}:{told}"
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
        for told in _check_file(path, _module_name(path.relative_to(root)))
    ]


def _check_file(path: Path, module: str) -> Iterator[str]:
    source = path.read_text()
    tree = ast.parse(source)
    is_package = path.name == "__init__.py"
    is_generated = "migrations" in path.parts
    if source.strip() and not is_generated and not ast.get_docstring(tree):
        yield "1: no module docstring"
    if module == "dashboard" and len(tree.body) > 1:
        yield "1: dashboard/__init__.py stays empty, so that small programs start without Django"
    package = module if is_package else module.rpartition(".")[0]
    for found in _read_imports(_nodes_in_functions(tree), package):
        if module not in LATE or not _is_in(found.names[0], LATE[module]):
            yield f"{found.line}: import inside a function"
    for found in _read_imports(ast.walk(tree), package):
        for why in _judge(module, found):
            yield f"{found.line}: {why}"


def _judge(module: str, found: Import) -> Iterator[str]:
    name = found.names[0]
    homes = {library: (home,) for library, home in HOMES.items()} | HOMES_IN_COMPACTION
    for library, places in homes.items():
        bound = library in HOMES or _is_in(module, "compaction")
        if bound and _is_in(name, library) and not any(_is_in(module, place) for place in places):
            yield f"{library} is imported in {' and '.join(places)} alone"
    for door in DOORS:
        if not any(_is_in(module, place) for place in door.places):
            continue
        for banned in door.never:
            if any(_is_in(candidate, banned) for candidate in found.names):
                yield f"{module} must not import {banned}"
        if not _passes(door, found):
            yield f"{module} must not import {found.names[-1]}"


def _passes(door: Door, found: Import) -> bool:
    top = found.names[0].partition(".")[0]
    if door.only is not None and top not in sys.stdlib_module_names:
        return _all_in(found.names, door.only)
    if door.only_here is not None and top in PACKAGES:
        return _all_in(found.names, door.only_here)
    return True


def _all_in(names: tuple[str, ...], allowed: tuple[str, ...]) -> bool:
    """The module itself is allowed, or everything that is taken out of it."""
    module, *taken = names
    return any(_is_in(module, prefix) for prefix in allowed) or (
        bool(taken) and all(any(_is_in(name, prefix) for prefix in allowed) for name in taken)
    )


def _read_imports(nodes: Iterable[ast.AST], package: str) -> Iterator[Import]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, (alias.name,))
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            yield Import(node.lineno, (base, *(f"{base}.{alias.name}" for alias in node.names)))


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if node.level == 0:
        return node.module or ""
    parts = package.split(".")
    kept = parts[: len(parts) - node.level + 1]
    return ".".join([*kept, node.module] if node.module else kept)


def _nodes_in_functions(tree: ast.Module) -> Iterable[ast.AST]:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return dict.fromkeys(inner for function in functions for inner in ast.walk(function))  # nested ones count once


def _module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _is_in(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")
