"""Values given to telling names: password=..., "api_key": "...", --token ..., and the value of a Cookie header.

Also where name and value are further apart: {"name": "DB_PASSWORD", "value": "..."}, a block of YAML, a sentence.
"""

import re
import string
from functools import lru_cache

from dashboard.ingest.redaction.forms import ASSIGNED, COOKIE, NEW_LINE, Assigned
from dashboard.ingest.redaction.marks import MARK_START, Span
from dashboard.ingest.redaction.placeholders import is_description, is_masked, is_placeholder
from dashboard.ingest.redaction.values import LONG, is_name_in_code, is_number, is_strong, is_strong_in_prose

# Every telling name has one of these in it, in upper or lower case; `tokens` is in every line and never a secret.
WORDS = (rb"k(?:ey|en[^s]|ie)", rb"cre[td]", rb"pass", rb"pwd", rb"auth", rb"pw[\"'\\\] \t:=]")

_IN_NAME = rb"[A-Za-z0-9_.\-]"  # faster than [\w.\-]
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
# What test runners print before the name of a test, as in "PASS: TestDraw/a_chart".
_VERDICT = rb"PASS:(?:(?<![\w.\-]PASS:)|(?<=\\[nrt]PASS:))"
# Most places fail here: behind the name is neither a sign nor a quote, or a blank and a word of letters alone, as in
# "token changed its", which is no secret.
_SIGN_AHEAD = (
    rb"(?!" + _VERDICT + rb")(?=" + _IN_NAME + rb"{2,40}+(?:\\*[\"'\]]|[:=>]|\*\*:|\\+u002[27]"
    rb"|[ \t](?!(?!(?:is|was|for|of|bearer|basic|token) )[A-Za-z]{1,30}+[ ,;)])"
    rb"|(?:,|" + _GAP + rb"){1,60}+(?:" + _QUOTE + rb")?+(?i:parameter|secret|value)))"
)
_ASSIGNMENT = re.compile(
    _SIGN_AHEAD + rb"(?i:passw(?:or)?d|passphrase|pass|pwd|pw|cret|ken|key|credentials?|auth)"
    rb"(?P<rest>" + _IN_NAME + rb"{0,24}+)"
    rb"(?P<name_quote>" + _QUOTE + rb")?+(?:" + _PAIR + rb")?+\]?+[ \t]{0,4}+(?:\*\*(?=:))?+"
    rb"(?P<sep>=>|:=|[:=>]|(?<=[ \t])(?P<prose>" + _IN_PROSE + rb")|(?<=[ \t]))(?:(?<=:)\*\*(?=[ \t]))?+[ \t]{0,4}+"
    rb"(?:(?P<quote>" + _QUOTE + rb")(?:(?P=quote){2}" + _GAP + rb"{0,30}+)?+"
    rb"(?:(?i:bearer|basic|token) )?+(?P<quoted>" + _QUOTED + rb"++)(?![ \t])"
    rb"|(?:" + _BLOCK + rb")?+(?:(?i:bearer|basic|token) )?+"
    rb"(?:(?P<ticks>`)|\*\*)?+(?P<plain>" + _PLAIN + rb"++)(?!\()(?(ticks)(?=`)))"
)
_NAME_CHARACTERS = (string.ascii_letters + string.digits + "_.-").encode()
_NETRC = re.compile(rb"(?<![\w\-])(?:login|user|account)[ \t]+[\w.@][\w.@+\-]{0,63}[ \t]+\Z")
_NAMES = tuple((kind, re.compile(kind.names, re.DOTALL)) for kind in ASSIGNED)
# Options that are a verb take the name of a key, as gpg's --list-secret-keys does.
_VERB_OPTION = re.compile(
    rb"--(?:list|export|delete|import|show|get|edit|print|create|generate|fetch|send)-", re.IGNORECASE
)
_SECOND_WORDS = frozenset({b"key", b"keys"})  # "key" alone is too common: the word before it decides
_WORD_BEFORE = re.compile(rb"[A-Za-z]{1,20} \Z")
_LONGEST_HEAD = 40  # bytes before the word in a name that are looked at
# Paths, images and variables go on behind a colon: info/libsecret-1:amd64.list, acme/secrets:v2.1, arn:...:secret:name
_BEFORE_PATHS = (b"/", b":", b"$", b"${")
_KEY_ID = re.compile(rb"[0-9A-F]{8,40}!?\Z")  # names a public key, as the signingkey of git does
_ENDS_A_STRING = (b":", b",", b")", b"]", b"}", b"+", b".")
_COOKIE_HEADER = re.compile(COOKIE.pattern)
_COOKIE = re.compile(rb"(?:\A|;)[ \t]*([\w.\-]{1,64})=([^;\s]*)")
_COOKIE_SETTINGS = frozenset({b"path", b"expires", b"domain", b"max-age", b"samesite", b"version", b"comment"})
_ANALYTICS = (b"__utm", b"_ga", b"_gid", b"_fbp")  # they count visits and sign nobody in
_VARIABLE_STARTS = (b"$", b"<", b"{")
_SESSION_NAME = re.compile(rb"(?i)sess|sid\b|auth|token|csrf|xsrf|jwt|login|secret|ticket|remember|_id\b")
_DIGIT = re.compile(rb"[0-9]")
_MOST_COOKIES = 40
_PROSE_KINDS = frozenset({"password", "token", "secret", "api-key"})
_SHORTEST = min(kind.shortest for kind in ASSIGNED)


def read_assignment(data: bytes, at: int) -> tuple[Span | None, int]:
    """What is given to the name that has a word at this place, if a secret, and up to where no such word matters."""
    cookie = _COOKIE_HEADER.match(data, at) if data[at + 1] in b"iI" else None
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
        if name in _COOKIE_SETTINGS or name.startswith(_ANALYTICS) or value.startswith(_VARIABLE_STARTS):
            continue
        if len(value) >= 6 and _SESSION_NAME.search(name) and not is_masked(value):
            return True
        if len(value) >= 12 and (value.isdigit() or (_DIGIT.search(value) and not is_placeholder(value))):
            return True
    return False


def _classify(data: bytes, match: "re.Match[bytes]", group: str) -> str | None:
    """The form that an assignment belongs to, if its name tells and its value is strong enough to be a secret."""
    value = match[group]
    if len(value) < _SHORTEST or value.isalpha() or MARK_START in value:
        return None
    head, outside = _read_before(data, match.start())
    written = head + data[match.start() : match.end("rest")]
    if written.lower() in _SECOND_WORDS:
        written = _read_word_before(outside) + written
    name = written.lower().lstrip(b"-.")
    kind = _find_kind(name)
    if kind is None or not _is_separated(match, written, outside):
        return None
    is_digits = is_number(value.rstrip(b"."))
    if (not is_digits and is_placeholder(value)) or _is_name_of_key(written, name, value):
        return None
    if _is_code(data, match, value) if group == "plain" else _is_outside_quotes(match, value, outside):
        return None
    if is_digits:
        is_secret = kind.name == "password" and _may_be_digits(data, match, group)
    else:
        is_secret = not _repeats(name, value.lower(), kind) and _is_strong_enough(value, kind, match)
    return kind.name if is_secret else None


def _read_before(data: bytes, at: int) -> tuple[bytes, bytes]:
    """The part of the name before this place, and what is before the name."""
    before = data[max(0, at - _LONGEST_HEAD) : at]
    outside = before.rstrip(_NAME_CHARACTERS)
    head = before[len(outside) :]
    # The letter of an escape such as \\n is no part of the name.
    return (head[1:] if outside.endswith(b"\\") else head), outside


def _read_word_before(outside: bytes) -> bytes:
    """The word before a name and the blank between them, as in "API key"; nothing if there is none."""
    match = _WORD_BEFORE.search(outside)
    return match[0] if match else b""


@lru_cache(maxsize=4096)
def _find_kind(name: bytes) -> Assigned | None:
    """Names repeat: most are looked up once."""
    return next((kind for kind, names in _NAMES if names.fullmatch(name)), None)


def _is_separated(match: "re.Match[bytes]", written: bytes, outside: bytes) -> bool:
    """Between a name and its value: a colon or an equals sign; a space after an option, `>` after a tag's name."""
    separator = match["sep"]
    if outside.endswith(MARK_START):
        return False  # the name of a mark
    if separator == b">":
        return outside.endswith(b"<")
    if separator == b":" and match.end("sep") == match.start("plain"):
        return not outside.endswith(_BEFORE_PATHS)
    if match["prose"]:
        return not match["rest"] and not match["name_quote"]
    is_netrc = written == b"password" and _NETRC.search(outside) is not None
    return bool(separator) or written.startswith(b"--") or is_netrc


def _is_name_of_key(written: bytes, name: bytes, value: bytes) -> bool:
    """Whether the value names a key: after an option such as --list-secret-keys, and after signingkey of git."""
    if name.endswith(b"signingkey"):
        return _KEY_ID.match(value) is not None
    return written.startswith(b"--") and _VERB_OPTION.match(written) is not None


def _may_be_digits(data: bytes, match: "re.Match[bytes]", group: str) -> bool:
    """Whether a number can be a password here: no number of JSON, and no constant of a program (PASSWORD = 404005)."""
    if match["rest"]:
        return False
    if group == "quoted":
        return True
    separator = match.start("sep")
    is_constant = match["sep"] == b"=" and data[separator - 1 : separator] == b" "
    return not (is_constant or match["name_quote"] or match["value_quote"])


def _is_code(data: bytes, match: "re.Match[bytes]", value: bytes) -> bool:
    separator = match.start("sep")
    is_spaced = data[separator - 1 : separator] in (b" ", b"\t")
    # In prose and between tags, what follows is no sign of code.
    after = b"" if match["prose"] or match["sep"] == b">" else data[match.end() : match.end() + 2]
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


def _is_strong_enough(value: bytes, kind: Assigned, match: "re.Match[bytes]") -> bool:
    if len(value) < kind.shortest:
        return False
    if match["prose"] and (kind.name not in _PROSE_KINDS or not is_strong_in_prose(value)):
        return False
    is_password = kind.name == "password"
    if not is_password and is_description(value):
        return False
    return is_strong(value, is_password=is_password, bits=kind.bits)
