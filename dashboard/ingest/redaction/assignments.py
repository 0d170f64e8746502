"""Values given to telling names: password=..., "api_key": "...", --token ..., and the value of a Cookie header."""

import math
import re
from collections import Counter

from dashboard.ingest.redaction.forms import ASSIGNED, COOKIE, Assigned
from dashboard.ingest.redaction.marks import MARK_START, Span

# Every telling name has one of these in it, in upper or lower case; `tokens` is in every line and never a secret.
WORDS = (rb"k(?:ey|en[^s]|ie)", rb"cre[td]", rb"pass", rb"pwd", rb"auth")

_QUOTE = rb"\\*[\"']|\\+u002[27]"
_CHARACTER = rb"[\xc2-\xf4][\x80-\xbf]{1,3}|\\+/|\\+u(?!002[27])[0-9A-Fa-f]{4}"
# A quote after an even run of backslashes ends the JSON string itself and is never part of a value.
_QUOTED = (
    rb"(?:[!#-&(-\[\]-~]|(?!(?P=quote))[\"'](?<=')|(?!(?P=quote))\\(?:\\\\)*+[\"']|"
    + _CHARACTER
    + rb"|(?:\\\\)++(?![\\\"']))"
)
_PLAIN = rb"(?:[!#-%*+\-./0-9:=?@A-Z^_a-z~]|" + _CHARACTER + rb")"
_ASSIGNMENT = re.compile(
    rb"(?i:passw(?:or)?d|passphrase|pass|pwd|cret|ken|key|credentials?|auth)(?P<rest>[\w.\-]{0,24}+)"
    rb"(?:" + _QUOTE + rb")?+\]?+[ \t]{0,4}+(?P<sep>=>|:=|[:=>]|(?<=[ \t]))[ \t]{0,4}+"
    rb"(?:(?P<quote>" + _QUOTE + rb")(?:(?i:bearer|basic|token) )?+(?P<quoted>" + _QUOTED + rb"++)(?![ \t])"
    rb"|(?:(?i:bearer|basic|token) )?+(?P<plain>" + _PLAIN + rb"++)(?!\())"
)
_NAME_START = re.compile(rb"[A-Za-z0-9_.\-]*\Z")
_NETRC = re.compile(rb"(?:login|user|account)[ \t]+\S{1,64}[ \t]+\Z")
_NAMES = tuple((kind, re.compile(kind.names, re.DOTALL)) for kind in ASSIGNED)
_NOT_A_SECRET = re.compile(
    rb"(?i)\[redacted|[<$%{*]|x{4}|\.{2}|your|my[_\-]|example|change|placeholder|dummy|replace"
    rb"|process\.|os\.|env[.(]|import|self\.|this\.|https?:|file:|[./~]+/|/\w+/"
    rb"|[a-z_]++\.[a-z_.]++\Z|[\d.,:\-]++(?:e[+\-]?\d++)?\Z|[a-z][a-z_\-]*+\Z"
    rb"|(?:0x)?0+\Z|sha\d+[:\-]|passw\w*\Z|refs/"
)
# What go test says of each test that passed: "--- PASS: TestDraw/a_chart (0.00s)".
_VERDICT, _VERDICT_START = b"PASS", b"--- "
# Options of gpg that take the name of a key, such as --list-secret-keys.
_KEY_OPTION = re.compile(rb"--[a-z\-]{1,30}-secret-(?:sub)?keys?", re.IGNORECASE)
_COOKIE_HEADER = re.compile(COOKIE.pattern)
_LONG = 64
_SHORTEST = min(kind.shortest for kind in ASSIGNED)


def read_assignment(data: bytes, at: int) -> tuple[Span | None, int]:
    """What is given to the name that has a word at this place, if a secret, and up to where no such word matters."""
    cookie = _COOKIE_HEADER.match(data, at)
    if cookie:
        return (*cookie.span("secret"), COOKIE.name), cookie.end()
    match = _ASSIGNMENT.match(data, at)
    if not match:
        return None, at
    group = "plain" if match["plain"] is not None else "quoted"
    start, end = match.span(group)
    name = _judge(data, match, group)
    if name:
        return (start, end, name), end
    return None, end if end - start > _LONG else at  # a long value is read once: many names in one would be quadratic


def _judge(data: bytes, match: "re.Match[bytes]", group: str) -> str | None:
    """The form that an assignment belongs to, if its name tells and its value is strong enough to be a secret."""
    value, end = match[group], match.end("rest")
    if len(value) < _SHORTEST or _NOT_A_SECRET.match(value) or MARK_START in value:
        return None
    before = data[max(0, match.start() - 40) : match.start()]
    start = _NAME_START.search(before)
    head = start[0] if start else b""
    outside = before[: len(before) - len(head)]
    if outside.endswith(b"\\"):
        head = head[1:]  # the letter of an escape such as \n
    if outside.endswith(MARK_START) or not _may_stand(match["sep"], head, outside):
        return None
    written = data[match.start() : end]
    if (written == _VERDICT and outside.endswith(_VERDICT_START)) or _KEY_OPTION.fullmatch(head + written):
        return None
    name = (head + written).lower().lstrip(b"-.")
    for kind, names in _NAMES:
        if names.fullmatch(name):
            return kind.name if _is_strong(value, kind) else None
    return None


def _may_stand(sep: bytes, head: bytes, outside: bytes) -> bool:
    """Between a name and its value: a colon or an equals sign; a space after an option, `>` after a tag's name."""
    if sep == b">":
        return outside.endswith(b"<")
    return bool(sep) or head.startswith(b"--") or _NETRC.search(outside) is not None


def _is_strong(value: bytes, kind: Assigned) -> bool:
    if len(value) < kind.shortest:
        return False
    sample = value[:_LONG]
    letters, digits = any(chr(byte).isalpha() for byte in sample), any(48 <= byte <= 57 for byte in sample)
    if not digits and not (kind.name == "password" and not sample.isalpha()):
        return False
    if not letters:
        return False
    counts = Counter(sample)
    bits = -sum(n / len(sample) * math.log2(n / len(sample)) for n in counts.values())
    return bits >= kind.bits
