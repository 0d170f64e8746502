"""A team's own redaction patterns, matched by RE2.

RE2 searches in time linear in the text. Finding all matches is linear too, because repeats must be bounded: the search
for one match reads at most a pattern's length beyond its end.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

MAX_LENGTH = 500  # characters
# Compiled instructions. Crafted patterns cost up to the product of their size and of all sizes together for each byte.
MAX_SIZE = 512
MAX_TOTAL_SIZE = 1024
_MAX_MEMORY = 4 * 1024 * 1024  # of one pattern; beyond it RE2 searches without its cache of states
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_TOKEN = re.compile(
    rb"(?P<quote>\\Q)|\\.|(?P<class>\[\^?\]?(?:\\.|[^\]\\])*+\])|(?P<endless>[*+]|\{\d+,\})|(?P<startless>\{,\d*\})|.",
    re.DOTALL,
)
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_BACKREFERENCE = re.compile(r"invalid escape sequence: \\\d|invalid perl operator: \(\?P\Z")
_OPERATOR = re.compile(r"invalid perl operator: (.+)", re.DOTALL)
_SAMPLES = (b"", b"\n", b"a a")  # a pattern that matches nowhere but between characters matches in one of them


class BadPattern(ValueError):
    """A pattern that cannot be used; the text says why."""


@dataclass(frozen=True)
class OwnPattern:
    name: str
    size: int
    _regex: Any  # google-re2 has no type information

    def find(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the start and end of every match, in bytes."""
        for match in self._regex.finditer(data):
            yield match.span()


def compile_own(name: str, pattern: str) -> OwnPattern:
    """Compile a pattern. Raises BadPattern with a sentence for people."""
    if not _NAME.fullmatch(name):
        raise BadPattern(f"The name {name!r} is invalid: use lower-case letters, digits and hyphens.")
    if len(pattern) > MAX_LENGTH:
        raise BadPattern(f"The pattern {name} has more than {MAX_LENGTH} characters.")
    if not pattern.isascii():
        raise BadPattern(f"The pattern {name} contains non-ASCII characters.")
    _require_bounded_repeats(name, pattern.encode())
    try:
        regex = re2.compile(pattern.encode(), _make_options())
    except re2.error as error:
        raise BadPattern(_explain(name, error.args[0].decode())) from error
    if regex.programsize > MAX_SIZE:
        raise BadPattern(
            f"The pattern {name} is too large: it compiles to {regex.programsize:,} instructions, the limit is"
            f" {MAX_SIZE:,}. Shorten its repeats."
        )
    if any(match.start() == match.end() or match[0] == b"\n" for text in _SAMPLES for match in regex.finditer(text)):
        raise BadPattern(f"The pattern {name} matches empty text or only a line end.")
    return OwnPattern(name, regex.programsize, regex)


def compile_all(patterns: Mapping[str, str]) -> tuple[OwnPattern, ...]:
    """Compile the patterns of one team. Raises BadPattern with a sentence for people."""
    compiled = tuple(compile_own(name, pattern) for name, pattern in patterns.items())
    if sum(pattern.size for pattern in compiled) > MAX_TOTAL_SIZE:
        raise BadPattern(
            f"The patterns are too large: together they compile to more than {MAX_TOTAL_SIZE:,} instructions."
            " Shorten their repeats."
        )
    return compiled


def compile_usable(patterns: Mapping[str, str]) -> tuple[OwnPattern, ...]:
    """Compile the stored patterns that can be used. `find_unusable` names the others."""
    unusable = find_unusable(patterns)
    return tuple(compile_own(name, pattern) for name, pattern in patterns.items() if name not in unusable)


def find_unusable(patterns: Mapping[str, str]) -> dict[str, str]:
    """Return the stored patterns that cannot be used, by name, each with the reason.

    They were saved by a version that matched them with another engine.
    """
    return dict(_find_unusable(tuple(patterns.items())))


@lru_cache(maxsize=256)
def _find_unusable(patterns: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(_check_each(patterns))


def _check_each(patterns: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    total = 0
    for name, pattern in patterns:
        try:
            total += compile_own(name, pattern).size
            if total > MAX_TOTAL_SIZE:
                raise BadPattern(f"The pattern {name} exceeds the total size of all patterns: shorten their repeats.")
        except BadPattern as refusal:
            yield name, str(refusal)


def _make_options() -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # one byte is one character, whatever the text is encoded in
    options.never_capture = True
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    return options


def _require_bounded_repeats(name: str, pattern: bytes) -> None:
    for token in _TOKEN.finditer(pattern):
        if token["endless"]:
            raise BadPattern(f"The pattern {name} has an unbounded repeat: write {{1,100}} instead of + or *.")
        if token["startless"]:  # text to RE2, a repeat to Python
            raise BadPattern(f"The pattern {name} has a repeat without a lower bound: write {{0,100}}, not {{,100}}.")
        unescaped_class = _ESCAPE.sub(b"", token["class"] or b"")
        if b"[" in unescaped_class[1:]:  # RE2 may end such a class later, and would read repeats that this check skips
            raise BadPattern(
                f"The pattern {name} has a [ inside a class: write [A-Za-z] for [[:alpha:]], or escape it."
            )
        if token["quote"]:
            raise BadPattern(f"The pattern {name} uses \\Q, which is not supported: escape each character.")


def _explain(name: str, error: str) -> str:
    if _BACKREFERENCE.match(error):
        return f"The pattern {name} uses a back-reference, which is not supported."
    if operator := _OPERATOR.match(error):
        return (
            f"The pattern {name} uses {operator[1]}, which is not supported: patterns have no look-ahead, look-behind,"
            " atomic groups, comments or verbose mode."
        )
    return f"The pattern {name} is not a valid RE2 expression: {error}."
