"""Values given to telling names: password=..., "api_key": "...", --token ..., and the value of a Cookie header.

Also where name and value are further apart: {"name": "DB_PASSWORD", "value": "..."}, a block of YAML, a sentence.
"""

import re
from functools import lru_cache

from dashboard.ingest.redaction.forms import ASSIGNED, COOKIE, NEW_LINE, Assigned
from dashboard.ingest.redaction.marks import MARK_START, Span
from dashboard.ingest.redaction.values import (
    LONG,
    is_masked,
    is_name_in_code,
    is_number,
    is_placeholder,
    is_strong,
    is_strong_in_prose,
)

# Every telling name has one of these in it, in upper or lower case; `tokens` is in every line and never a secret.
WORDS = (rb"k(?:ey|en[^s]|ie)", rb"cre[td]", rb"pass", rb"pwd", rb"auth", rb"pw[\"'\\\] \t:=]")

_QUOTE = rb"\\*[\"']|\\+u002[27]"
_CHARACTER = rb"[\xc2-\xf4][\x80-\xbf]{1,3}|\\+/|\\+u(?!002[27])[0-9A-Fa-f]{4}"
# A quote after an even run of backslashes ends the JSON string itself and is never part of a value.
_QUOTED = (
    rb"(?:[!#-&(-\[\]-~]|(?!(?P=quote))[\"'](?<=')|(?!(?P=quote))\\(?:\\\\)*+[\"']|"
    + _CHARACTER
    + rb"|(?:\\\\)++(?![\\\"']))"
)
_PLAIN = rb"(?:[!#-%*+\-./0-9:=?@A-Z^_a-z~]|" + _CHARACTER + rb")"
_LINE_NUMBER = rb"\d{1,6}(?=\t|\\+t|\\+u2192|\xe2\x86\x92)"
_GAP = rb"(?:" + NEW_LINE + rb"|" + _LINE_NUMBER + rb")"
# "DB_PASSWORD", "value": of Kubernetes, Terraform and container definitions, in JSON and YAML.
_PAIR = (
    rb"(?:,|" + _GAP + rb"){1,60}+(?P<value_quote>" + _QUOTE + rb")?+(?i:(?:parameter|secret)?value)"
    rb"(?:" + _QUOTE + rb")?+(?=[ \t]{0,4}[:=])"
)
_IN_PROSE = rb"(?:(?:for|of)(?:[ \t][\w.@\-]{1,30}){1,3}?[ \t])?(?:is|was)(?:[ \t](?:now|still|set[ \t]to))?:?(?=[ \t])"
_BLOCK = rb"[|>][+\-]?\d?" + _GAP + rb"{2,60}+"  # password: | and the value on the next line
_ASSIGNMENT = re.compile(
    rb"(?i:passw(?:or)?d|passphrase|pass|pwd|pw|cret|ken|key|credentials?|auth)(?P<rest>[\w.\-]{0,24}+)"
    rb"(?P<name_quote>" + _QUOTE + rb")?+(?:" + _PAIR + rb")?+\]?+[ \t]{0,4}+"
    rb"(?P<sep>=>|:=|[:=>]|(?<=[ \t])(?P<prose>" + _IN_PROSE + rb")|(?<=[ \t]))[ \t]{0,4}+"
    rb"(?:(?P<quote>" + _QUOTE + rb")(?:(?P=quote){2}" + _GAP + rb"{0,30}+)?+"
    rb"(?:(?i:bearer|basic|token) )?+(?P<quoted>" + _QUOTED + rb"++)(?![ \t])"
    rb"|(?:" + _BLOCK + rb")?+(?:(?i:bearer|basic|token) )?+(?P<plain>" + _PLAIN + rb"++)(?!\())"
)
_NAME_START = re.compile(rb"[A-Za-z0-9_.\-]*\Z")
_NETRC = re.compile(rb"(?<![\w\-])(?:login|user|account)[ \t]+[\w.@][\w.@+\-]{0,63}[ \t]+\Z")
_NAMES = tuple((kind, re.compile(kind.names, re.DOTALL)) for kind in ASSIGNED)
# What test runners print before the name of a test, as in "PASS: TestDraw/a_chart".
_VERDICT = b"PASS"
# Options that are a verb take the name of a key, as gpg's --list-secret-keys does.
_VERB_OPTION = re.compile(
    rb"--(?:list|export|delete|import|show|get|edit|print|create|generate|fetch|send)-", re.IGNORECASE
)
_KEY_ID = re.compile(rb"[0-9A-F]{8,40}!?\Z")  # names a public key, as the signingkey of git does
_ENDS_A_STRING = (b":", b",", b")", b"]", b"}", b"+", b".")
_COOKIE_HEADER = re.compile(COOKIE.pattern)
_COOKIE = re.compile(rb"(?:\A|;)[ \t]*([\w.\-]{1,64})=([^;\s]*)")
_COOKIE_SETTINGS = frozenset({b"path", b"expires", b"domain", b"max-age", b"samesite", b"version", b"comment"})
_SESSION_NAME = re.compile(rb"(?i)sess|sid\b|auth|token|csrf|xsrf|jwt|login|secret|ticket|remember|_id\b")
_DIGIT = re.compile(rb"[0-9]")
_MOST_COOKIES = 40
_PROSE_KINDS = frozenset({"password", "token", "secret", "api-key"})
_SHORTEST = min(kind.shortest for kind in ASSIGNED)


def read_assignment(data: bytes, at: int) -> tuple[Span | None, int]:
    """What is given to the name that has a word at this place, if a secret, and up to where no such word matters."""
    cookie = _COOKIE_HEADER.match(data, at) if data[at] in b"kK" else None
    if cookie:
        span = (*cookie.span("secret"), COOKIE.name)
        return (span if has_session(cookie["secret"]) else None), cookie.end()
    match = _ASSIGNMENT.match(data, at)
    if not match:
        return None, at
    group = "plain" if match["plain"] is not None else "quoted"
    start, end = match.span(group)
    name = _classify(data, match, group)
    if name:
        return (start, end, name), end
    return None, end if end - start > LONG else at  # a long value is read once: many names in one would be quadratic


def has_session(cookies: bytes) -> bool:
    """Whether one of the cookies may sign somebody in: by its name, or by a long value with digits."""
    for number, cookie in enumerate(_COOKIE.finditer(cookies)):
        name, value = cookie[1].lower(), cookie[2][:LONG]
        if number > _MOST_COOKIES:
            return True
        if name in _COOKIE_SETTINGS:
            continue
        if len(value) >= 6 and _SESSION_NAME.search(name) and not is_masked(value):
            return True
        if len(value) >= 12 and (value.isdigit() or (_DIGIT.search(value) and not is_placeholder(value))):
            return True
    return False


def _classify(data: bytes, match: "re.Match[bytes]", group: str) -> str | None:
    """The form that an assignment belongs to, if its name tells and its value is strong enough to be a secret."""
    value = match[group]
    # A number of JSON stays a number: without quotes, one of a quoted name is left alone.
    is_digits = is_number(value) and (group == "quoted" or not (match["name_quote"] or match["value_quote"]))
    if (
        is_digits
        and group == "plain"
        and match["sep"] == b"="
        and data[match.start("sep") - 1 : match.start("sep")] == b" "
    ):
        return None  # a constant of a program
    if len(value) < _SHORTEST or MARK_START in value or (not is_digits and is_placeholder(value)):
        return None
    before = data[max(0, match.start() - 40) : match.start()]
    start = _NAME_START.search(before)
    head = start[0] if start else b""
    outside = before[: len(before) - len(head)]
    if outside.endswith(b"\\"):
        head = head[1:]  # the letter of an escape such as \n
    written = head + data[match.start() : match.end("rest")]
    if (
        outside.endswith(MARK_START)
        or not _is_separated(match, head, outside)
        or (written == _VERDICT and match["sep"] == b":")
        or (written.startswith(b"--") and _VERB_OPTION.match(written))
        or (_is_code(data, match, value) if group == "plain" else _is_outside_quotes(match, value, outside))
    ):
        return None
    name = written.lower().lstrip(b"-.")
    kind = _find_kind(name)
    if kind is None or _repeats(name, value.lower(), kind) or (name.endswith(b"signingkey") and _KEY_ID.match(value)):
        return None
    if is_digits:
        return kind.name if kind.name == "password" and not match["rest"] and not match["prose"] else None
    return kind.name if _is_secret(value, kind, match) else None


@lru_cache(maxsize=4096)
def _find_kind(name: bytes) -> Assigned | None:
    """Names repeat: most are looked up once."""
    return next((kind for kind, names in _NAMES if names.fullmatch(name)), None)


def _is_separated(match: "re.Match[bytes]", head: bytes, outside: bytes) -> bool:
    """Between a name and its value: a colon or an equals sign; a space after an option, `>` after a tag's name."""
    if match["sep"] == b">":
        return outside.endswith(b"<")
    if (
        match["sep"] == b":"
        and outside.endswith((b"/", b":", b"$", b"${"))
        and match.end("sep") == match.start("plain")
    ):
        return (
            False  # a path, an image or a variable: info/libsecret-1:amd64.list, acme/secrets:v2.1, arn:...:secret:name
        )
    if match["prose"]:
        return not match["rest"] and not match["name_quote"]
    return bool(match["sep"]) or head.startswith(b"--") or _NETRC.search(outside) is not None


def _is_code(data: bytes, match: "re.Match[bytes]", value: bytes) -> bool:
    separator = match.start("sep")
    is_spaced = data[separator - 1 : separator] in (b" ", b"\t")
    after = data[match.end() : match.end() + 2]
    if match["sep"] == b":" and value.endswith(b"!") and value[:-1].isalpha():
        return True  # a type of GraphQL
    if value.endswith((b":", b"===")) or (value[:1] in b"+=&" and match["sep"] == b"="):
        return True
    return is_name_in_code(value, after.lstrip(b" "), match["sep"], is_spaced=is_spaced)


def _is_outside_quotes(match: "re.Match[bytes]", value: bytes, outside: bytes) -> bool:
    """Whether the quote before the value closes a string in which the name stands, as in "PWD="+folder."""
    if value.startswith(_ENDS_A_STRING) and not match["name_quote"]:
        return outside.endswith(match["quote"]) or value.startswith(_ENDS_A_STRING[:5])
    return value.startswith(_ENDS_A_STRING[:2])


def _repeats(name: bytes, value: bytes, kind: Assigned) -> bool:
    """A value that is the name again, also with a number: subject_token=subject_token_0. Passwords may be like that."""
    bare = value.rstrip(b"0123456789").rstrip(b"_-") if b"_" in value and kind.name != "password" else value
    return name.endswith(bare)


def _is_secret(value: bytes, kind: Assigned, match: "re.Match[bytes]") -> bool:
    if len(value) < kind.shortest:
        return False
    if match["prose"] and (kind.name not in _PROSE_KINDS or not is_strong_in_prose(value)):
        return False
    return is_strong(value, is_password=kind.name == "password", bits=kind.bits)
