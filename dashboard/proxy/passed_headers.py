"""Which headers pass: all but those of one connection (RFC 9110, 7.6.1) and our own. No Django here."""

from collections.abc import Iterable
from http import HTTPStatus

from multidict import CIMultiDict

KEY_HEADER = b"x-plimsoll-key"
OWN_PREFIX = b"x-plimsoll-"
OWN_COOKIES = b"plimsoll_"
OF_ONE_CONNECTION = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
        b"trailer", b"transfer-encoding", b"upgrade",
    }
)  # fmt: skip
# Said anew to the upstream: its own name, and the server here has answered an expectation already.
_SAID_ANEW = frozenset({b"host", b"expect"})
# A page of an upstream must not run as a page of Plimsoll.
_PAGES = (b"text/html", b"application/xhtml", b"image/svg", b"text/xml", b"application/xml")
_NO_SCRIPTS = (b"content-security-policy", b"sandbox")

# An answer without a body may say how long the one is that the caller has; the server here would wait for so much.
_LENGTH_OF_ANOTHER = frozenset({b"content-length"})

RawHeaders = Iterable[tuple[bytes, bytes]]


def pass_request_headers(headers: RawHeaders) -> "CIMultiDict[str]":
    """What the upstream is told; names come in small letters from the server."""
    listed = list(headers)
    dropped = _find_dropped(listed) | _SAID_ANEW
    passed: CIMultiDict[str] = CIMultiDict()
    for name, value in listed:
        kept = _drop_own_cookies(value) if name == b"cookie" and OWN_COOKIES in value else value
        if name not in dropped and not name.startswith(OWN_PREFIX) and (kept or not value):
            passed.add(name.decode("latin-1"), _decode(kept))
    return passed


def pass_response_headers(headers: RawHeaders, *, status: int = 200) -> list[tuple[bytes, bytes]]:
    """What the caller is told: order and repetition stay. Names in small letters, as the server here writes them."""
    listed = [(name.lower(), value) for name, value in headers]
    dropped = _find_dropped(listed)
    if status == HTTPStatus.NOT_MODIFIED:
        dropped |= _LENGTH_OF_ANOTHER
    passed = [header for header in listed if header[0] not in dropped]
    for name, value in passed:
        if name == b"content-type" and value.lower().startswith(_PAGES):
            return [*passed, _NO_SCRIPTS]
    return passed


def _find_dropped(headers: RawHeaders) -> frozenset[bytes]:
    """Of headers with names in small letters: those of one connection, and those that it names itself."""
    dropped = OF_ONE_CONNECTION
    for name, value in headers:
        if name == b"connection":
            dropped |= {part.strip().lower() for part in value.split(b",")}
    return dropped


def _drop_own_cookies(value: bytes) -> bytes:
    kept = [part for part in value.split(b";") if not part.strip().startswith(OWN_COOKIES)]
    return b";".join(kept).strip()


def _decode(value: bytes) -> str:
    """The client library writes headers as UTF-8."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
