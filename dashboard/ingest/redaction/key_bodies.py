"""Private keys whose first line is missing: by how their data starts in base64, and by their last line.

Certificates, public keys and signatures start in other ways and stay.
"""

import re
from collections.abc import Iterator

from dashboard.ingest.redaction.forms import ANYWHERE, NEW_LINE
from dashboard.ingest.redaction.marks import Span

NAME = "private-key"
_BASE64 = rb"(?:[A-Za-z0-9+/]|\\+/)"
_ANY = _BASE64
_MOST_BACKSLASHES = 3  # before a slash among the first characters, in JSON in JSON
# How many characters before the expression the body starts, the expression, and the body's start.
_STARTS = (
    (0, rb"b3BlbnNzaC1rZXktdjE", rb"b3BlbnNzaC1rZXktdjE"),  # OpenSSH: "openssh-key-v1"
    (6, rb"IBADA[LN]BgkqhkiG9w0BAQ", rb"MII" + _ANY + rb"{3}IBADA"),  # PKCS#8, RSA
    (6, rb"IBADCCA[A-Za-z0-9+/]{2}GByqGSM44", rb"MII" + _ANY + rb"{3}IBADCCA"),  # PKCS#8, DSA
    (4, rb"AgEAM[A-Za-z0-9+/]{2}GByqGSM", rb"MI[GH]" + _ANY + rb"AgEAM"),  # PKCS#8, EC
    (3, rb"CAQAwEwYHKoZIzj0C", rb"M[A-P]" + _ANY + rb"CAQAw"),  # PKCS#8, EC, short
    (3, rb"CAQAwBQYDK2V[uwxv]B", rb"M[A-P]" + _ANY + rb"CAQAwBQYDK2V"),  # PKCS#8, Ed25519 and its kin
    (6, rb"IBAAK[BC]", rb"MII" + _ANY + rb"{3}IBAAK[BC]" + _ANY),  # PKCS#1, RSA or DSA
    (6, rb"IBAAJ[AB]", rb"MII" + _ANY + rb"{3}IBAAJ[AB]"),  # PKCS#1, RSA, short
    (2, rb"[cQ]CAQEEI", rb"MH[cQ]CAQEEI"),  # SEC 1, EC
    (4, rb"AgEBB[DE]", rb"MI[GH]" + _ANY + rb"AgEBB[DE]"),  # SEC 1, EC, long
    (9, rb"gkqhkiG9w0BBQ0", rb"MII" + _ANY + rb"{3}" + _ANY + rb"{3}gkqhkiG9w0BBQ0"),  # PKCS#8, encrypted
    (8, rb"kqhkiG9w0BBQ0", rb"MII" + _ANY + rb"{5}kqhkiG9w0BBQ0"),
    (6, rb"CSqGSIb3DQEFDT", rb"M[IH]" + _ANY + rb"{4}CSqGSIb3DQEFDT"),  # PKCS#8, encrypted, EC
    # OpenPGP, version 4: the tag of a secret key, its length, the version, a time since 2001, the algorithm
    (0, rb"lQ[A-Za-z0-9+/]{2}B[D-G]", rb"lQ" + _ANY + rb"{2}B[D-G]" + _ANY + rb"{5}[BCDQR]"),
    (0, rb"xc[A-Za-z0-9+/]{2}B[D-G]", rb"xc" + _ANY + rb"{2}B[D-G]" + _ANY + rb"{5}[BCDQR]"),
    (12, rb"KwYBBAHaRw8B", rb"(?:l[A-P]|x[Q-Za-f])" + _ANY + rb"E[P-Za-f]" + _ANY + rb"{5}YJKwYB"),  # Ed25519
)
_LAST_LINE = rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY"
EXPRESSIONS = (*(expression for _, expression, _ in _STARTS), _LAST_LINE)
_FIRST = tuple(
    (back, re.compile(ANYWHERE + rb"(?=" + start + rb")" + _BASE64 + rb"{40,}+={0,2}")) for back, _, start in _STARTS
)
# The next line of the body, also where each line is a string of its own in a program's source.
_NEXT = re.compile(
    rb"(?:(?P<quotes>(?:\\+[nr])*+\\*+[\"'][ \t]*+[+.]*+(?:\\+(?=[\r\n]))?+(?:" + NEW_LINE + rb")*+[bru]?\\*+[\"'])"
    rb"|" + NEW_LINE + rb"++(?:\d{1,6}" + NEW_LINE + rb"++)?+)"
    rb"(?P<line>(?:" + _BASE64 + rb"++={0,2}|=[A-Za-z0-9+/]{4}))(?![A-Za-z0-9_\-.,:(])"
)
_FULL_LINE = 40
_MOST_LINES = 2_000
_FARTHEST = 64 * 1024  # bytes before a last line that are looked at
# The bytes before a last line, back to front.
_BACKWARDS = re.compile(
    rb"(?:[nrt]\\++|[aAdD9]000u\\++|2912u\\++|[\r\n\t ]|\x92\x86\xe2|/\\++"
    rb"|(?![nrt]\\|[aAdD9]000u\\|2912u\\)[A-Za-z0-9+/=])*+"
)
_TOP_LINE = re.compile(ANYWHERE + rb"(?:[A-Za-z0-9+/]|\\+/){40,}+")


def read_key_body(number: int, data: bytes, at: int) -> tuple[list[Span], int]:
    """The parts of a key at the place of an expression, and up to where the same expression needs no second look."""
    if number == len(_STARTS):
        return list(_read_upwards(data, at)), at
    back, first = _FIRST[number]
    matches = (first.match(data, at - more) for more in range(back, back + _MOST_BACKSLASHES + 1) if at >= more)
    match = next(filter(None, matches), None) if back else first.match(data, at)
    if not match:
        return [], at
    spans = list(_read_downwards(data, match.start(), match.end()))
    return spans, spans[-1][1]


def _read_downwards(data: bytes, start: int, end: int) -> Iterator[Span]:
    """One span for lines that follow each other, and one for each line that is a string of its own."""
    line_start = start
    for _ in range(_MOST_LINES):
        match = _NEXT.match(data, end) if end - line_start >= _FULL_LINE else None
        if not match:
            break
        if match["quotes"]:
            yield start, end, NAME
            start = match.start("line")
        line_start, end = match.span("line")
    yield start, end, NAME


def _read_upwards(data: bytes, at: int) -> Iterator[Span]:
    before = data[max(0, at - _FARTHEST) : at]
    lines = _BACKWARDS.match(before[::-1])
    if lines and lines.end() >= _FULL_LINE:
        top = _TOP_LINE.search(before, len(before) - lines.end())
        if top:
            yield at - len(before) + top.start(), at, NAME
