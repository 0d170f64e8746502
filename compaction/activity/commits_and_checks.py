"""Commits made through the shell, and runs of tests, linters and builds with the verdict of their output."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from compaction.activity.excerpts import trim_command
from compaction.activity.failures import read_failure
from compaction.activity.tool_calls import Activity, ToolCall

_COMMIT = re.compile(r"\bgit\b[^\n|;&]{0,80}\bcommit\b")
_MADE = re.compile(r"^\[([^\]\n]{1,120}?) ([0-9a-f]{6,40})\] (.{1,300})$", re.MULTILINE)
_TEST = (
    r"pytest|mix test|go test|cargo (?:test|nextest)|(?:npm|yarn|pnpm|bun)(?: run)? test\S*|npx (?:jest|vitest"
    r"|playwright)"
    r"|jest|vitest|rspec|phpunit|ctest|tox|nox|dotnet test|mvn (?:test|verify)|gradlew? \S*test|make \S*test\S*"
    r"|(?:mise|just|task|deno)(?: run)? \S*test\S*|python3? -m (?:pytest|unittest)|swift test|flutter test"
    r"|zig build test"
)
_LINT = (
    r"ruff|mypy|pyright|flake8|pylint|black --check|eslint|prettier --check|tsc|biome|golangci-lint|go vet|gofmt"
    r"|mix (?:credo|dialyzer|format)|cargo (?:clippy|fmt)|rubocop|shellcheck|pre-commit run"
    r"|(?:npm|yarn|pnpm|bun)(?: run)? (?:lint|typecheck|check|format)\S*|make \S*(?:lint|check|format)\S*"
    r"|(?:mise|just|task)(?: run)? \S*(?:lint|fmt|check|format)\S*|python3? -m (?:mypy|ruff)"
)
_BUILD = (
    r"go build|cargo (?:build|check)|mix compile|(?:npm|yarn|pnpm|bun)(?: run)? build\S*|make(?: \S*build\S*"
    r"| all)?(?=\s|$|;|&)"
    r"|cmake --build|dotnet build|mvn (?:package|compile|install)|gradlew? \S*(?:build|assemble)\S*|docker build"
    r"|swift build"
    r"|(?:mise|just|task)(?: run)? \S*build\S*|vite build|webpack"
)
# Where a program may begin in a command line.
_START = r"(?:^|[|;&(]\s*|\b[A-Z_]+=\S+ |\s(?:run|exec|npx|time|timeout \d+) |/)"
# Lines by which tools of the common languages give their verdict.
_VERDICT = re.compile(
    r"\b\d[\d,]* (?:doctests?|tests?|passed|failed|failures?|errors?|examples?|specs?|issues?|problems?|warnings?"
    r"|mods/funs"
    r"|suites?|assertions?|skipped)\b|^ok\s+\S+|^\s*(?:PASS|FAIL|FAILED|OK)\b|found no issues|no issues found|0 issues"
    r"|All checks passed|Success: no|BUILD (?:SUCCESS|FAILED)|Build succeeded|test result: |^Tests?:\s"
    r"|Compiled successfully"
    r"|compiled with|done \(passed|Finished in|^Generated \S+ app",
    re.IGNORECASE | re.MULTILINE,
)
_FAILING = re.compile(
    r"\b[1-9]\d* (?:failed|failures?|errors?)\b|^\s*(?:-+ )?FAIL|BUILD FAILED|\b[1-9]\d* (?:issues|problems)\b",
    re.MULTILINE,
)
_WEAK = re.compile(r"^\s*(?:ok\s|Generated)|Finished in|\[no test files\]|\(cached\)")
_IN_BACKGROUND = "Command running in background"
_LONGEST_LINE = 200
_MOST_VERDICTS = 2
_TAIL_LINES = 400


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit as git reported it."""

    subject: str
    revision: str
    entry_index: int
    entry_uuid: str | None
    command: str = ""
    at: datetime | None = None


class CheckKind(StrEnum):
    """What a command checks."""

    TESTS = "tests"
    LINT = "lint"
    BUILD = "build"


_KINDS = tuple(
    (kind, re.compile(rf"{_START}(?:{words})(?=$|[\s;&|)])"))
    for kind, words in ((CheckKind.TESTS, _TEST), (CheckKind.LINT, _LINT), (CheckKind.BUILD, _BUILD))
)


@dataclass(frozen=True, slots=True)
class CheckRun:
    """The newest run of one command: the verdict it printed, and how many changes to files came after it."""

    kinds: tuple[CheckKind, ...]
    tool_call: ToolCall
    verdict: tuple[str, ...]
    is_failed: bool
    changes_after: int


def is_commit_attempt(command: str) -> bool:
    """Return whether the command asks git for a commit."""
    return bool(_COMMIT.search(command))


def list_commits(activity: Activity) -> tuple[Commit, ...]:
    """Return the commits that git confirmed, in order."""
    return tuple(
        Commit(subject.strip(), revision, call.entry_index, call.entry.uuid, call.command, call.entry.at)
        for call in activity.tool_calls
        if call.command is not None and is_commit_attempt(call.command) and not (call.is_error and read_failure(call))
        for _, revision, subject in _MADE.findall(call.output)
    )


def read_checks(activity: Activity) -> tuple[CheckRun, ...]:
    """Return the newest run of each checking command, newest first."""
    newest: dict[str, tuple[tuple[CheckKind, ...], ToolCall]] = {}
    for tool_call in activity.tool_calls:
        if tool_call.command is None or tool_call.result is None:
            continue
        kinds = classify_command(tool_call.command)
        if kinds and not tool_call.output.startswith(_IN_BACKGROUND):
            name = " ".join(trim_command(tool_call.command).split()[:3])
            newest.pop(name, None)
            newest[name] = (kinds, tool_call)
    changes = [call.entry_index for call in activity.tool_calls if call.is_file_change and call.result is not None]
    return tuple(
        CheckRun(
            kinds,
            tool_call,
            read_verdict(tool_call),
            is_failed=bool(read_failure(tool_call)) or bool(_FAILING.search(tool_call.output)),
            changes_after=len(changes) - bisect_right(changes, tool_call.entry_index),
        )
        for kinds, tool_call in reversed(newest.values())
    )


def classify_command(command: str) -> tuple[CheckKind, ...]:
    """Return what the command checks; a commit that mentions a test in its message checks nothing."""
    line = command.split("<<", 1)[0].split(" -m ", 1)[0] if "git commit" in command else command
    return tuple(kind for kind, pattern in _KINDS if pattern.search(line))


def read_verdict(tool_call: ToolCall) -> tuple[str, ...]:
    """Return the lines that give the result of the run: counts before bare `ok` lines, failures before passes."""
    lines = [line.strip() for line in tool_call.output.splitlines()[-_TAIL_LINES:] if line.strip()]
    verdicts = [line for line in lines if _VERDICT.search(line) and len(line) <= _LONGEST_LINE]
    if not verdicts:
        return tuple(line[:_LONGEST_LINE] for line in lines[-1:])
    failing = [line for line in verdicts if _FAILING.search(line)]
    strong = failing or [line for line in verdicts if not _WEAK.search(line)] or verdicts
    return tuple(dict.fromkeys(" ".join(line.split()) for line in strong[-_MOST_VERDICTS:]))
