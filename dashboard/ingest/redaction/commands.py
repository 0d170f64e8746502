"""Passwords and cookies among the arguments of commands: curl -u user:password, curl -b, mysql -pPASSWORD."""

import re

from dashboard.ingest.redaction.assignments import has_session
from dashboard.ingest.redaction.marks import MARK_START, Span
from dashboard.ingest.redaction.placeholders import is_placeholder

_QUOTE = rb"(?:\\*[\"'])?+"
_PASSWORD = rb"(?P<password>[^\s\"'\\`<>|;&)]{3,128}+)"
_COOKIES = rb"(?P<cookie>[\w.\-]{1,64}=[^\s\"'\\]++(?:(?<=;)[ ][^\s\"'\\]++)*+)"
_CURL = re.compile(
    rb"[ \t]-(?:(?:[a-zA-Z]{0,6}[uU][ \t]*+|-(?:proxy-)?user[ \t=]++)" + _QUOTE + rb"[^\s:\"'\\$<{]{1,80}:" + _PASSWORD
    + rb"|(?:[a-zA-Z]{0,6}b[ \t]*+|-cookie[ \t=]++)" + _QUOTE + _COOKIES + rb")"
)  # fmt: skip
_GLUED = re.compile(rb"[ \t]-p" + _QUOTE + _PASSWORD)
_APART = re.compile(rb"[ \t](?:-p|-w)[ \t]*+" + _QUOTE + _PASSWORD)
_REDIS = re.compile(rb"[ \t](?:-a|--pass)[ \t]++" + _QUOTE + _PASSWORD)  # -p is the port
_OPTIONS = (
    (rb"curl[ \t]", _CURL),
    (rb"(?:mysql|mysqldump|mysqladmin|mysqlimport|mysqlsh|mariadb|mariadb-dump)[ \t]", _GLUED),
    (rb"redis-cli[ \t]", _REDIS),
    (
        rb"(?:sshpass|ldapsearch|ldapadd|ldapmodify|docker login|podman login|helm registry login)[ \t]",
        _APART,
    ),
)
EXPRESSIONS = tuple(expression for expression, _ in _OPTIONS)
_LONGEST = 1_000  # bytes of a command that are looked at
_COMMAND_END = re.compile(rb"(?:\\[nr]|[\r\n])(?<!\\\\[nr])(?<!\\[\r\n])|[ \t](?:\||&&)[ \t]")
_NOT_A_PASSWORD = re.compile(
    rb"(?i)(?:pass(?:word|wd)?|pw|pwd|secret|[x.*]{3,}|none|your\w*|token|apikey|api_key|pass_?phrase)[.,]?\Z"
)


def read_command(number: int, data: bytes, at: int) -> tuple[list[Span], int]:
    """The secrets among the arguments of the command at this place, and where its text ends."""
    options = _OPTIONS[number][1]
    stop = min(at + _LONGEST, len(data))
    if not options.search(data, at, stop):
        return [], at
    command_end = _COMMAND_END.search(data, at, stop)
    stop = command_end.start() if command_end else stop
    spans = []
    for match in options.finditer(data, at, stop):
        kind = match.lastgroup or ""
        if _is_secret(kind, match[kind]):
            spans.append((*match.span(kind), kind))
    return spans, stop


def _is_secret(kind: str, value: bytes) -> bool:
    if MARK_START in value:
        return False
    if kind == "cookie":
        return has_session(value)
    return not (value.isalpha() and value.isupper()) and (
        (value.isalnum() and not value.isalpha())
        or not (_NOT_A_PASSWORD.match(value) or (is_placeholder(value) and not value.isalpha()))
    )
