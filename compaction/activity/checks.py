"""Runs of tests, linters and builds: the newest of each kind with the verdict its output gives."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum

from compaction.activity.excerpts import is_change, trim_command
from compaction.activity.failures import read_failure
from compaction.activity.tool_calls import Activity, ToolCall

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
_START = r"(?:^|[|;&(]\s*|\b[A-Z_]+=\S+ |\s(?:run|exec|npx|time|timeout \d+) |/)"
_KINDS = tuple(
    (name, re.compile(rf"{_START}(?:{words})(?=$|[\s;&|)])"))
    for name, words in (("tests", _TEST), ("lint", _LINT), ("build", _BUILD))
)
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


class CheckKind(StrEnum):
    """What a command checks."""

    TESTS = "tests"
    LINT = "lint"
    BUILD = "build"


@dataclass(frozen=True, slots=True)
class Check:
    """The newest run of one command: what it printed as its verdict, and how many changes to files came after it."""

    kinds: tuple[CheckKind, ...]
    action: ToolCall
    verdict: tuple[str, ...]
    is_failed: bool
    changes_after: int

    @property
    def place(self) -> int:
        """The index of the request."""
        return self.action.place


def read_checks(work: Activity) -> tuple[Check, ...]:
    """Return the newest run of each checking command, newest first."""
    newest: dict[str, tuple[tuple[CheckKind, ...], ToolCall]] = {}
    changes = [action.place for action in work.actions if is_change(action) and action.result is not None]
    for action in work.actions:
        if action.command is None or action.result is None:
            continue
        kinds = find_kinds(action.command)
        if kinds and not action.output.startswith(_IN_BACKGROUND):
            name = " ".join(trim_command(action.command).split()[:3])
            newest.pop(name, None)
            newest[name] = (kinds, action)
    return tuple(
        Check(
            kinds,
            action,
            read_verdict(action),
            is_failed=bool(read_failure(action)) or bool(_FAILING.search(action.output)),
            changes_after=len(changes) - bisect_right(changes, action.place),
        )
        for kinds, action in reversed(newest.values())
    )


def find_kinds(command: str) -> tuple[CheckKind, ...]:
    """Return what the command checks; a commit that mentions a test in its message checks nothing."""
    line = command.split("<<", 1)[0].split(" -m ", 1)[0] if "git commit" in command else command
    return tuple(CheckKind(name) for name, pattern in _KINDS if pattern.search(line))


def read_verdict(action: ToolCall) -> tuple[str, ...]:
    """Return the lines that say how the run ended: counts before bare `ok` lines, failures before passes."""
    lines = [line.strip() for line in action.output.splitlines()[-_TAIL_LINES:] if line.strip()]
    verdicts = [line for line in lines if _VERDICT.search(line) and len(line) <= _LONGEST_LINE]
    if not verdicts:
        return tuple(line[:_LONGEST_LINE] for line in lines[-1:])
    failing = [line for line in verdicts if _FAILING.search(line)]
    strong = failing or [line for line in verdicts if not _WEAK.search(line)] or verdicts
    return tuple(dict.fromkeys(" ".join(line.split()) for line in strong[-_MOST_VERDICTS:]))
