"""Whether a program's key is valid, asked before its body is read. What the key may do is decided by the view, which
asks again."""

import hashlib
from urllib.parse import unquote

from django.conf import settings
from django.utils import timezone

from dashboard.accounts.keys import NO_KEY, KeyRefused, find_key
from dashboard.accounts.recent_answers import RecentAnswers
from dashboard.front_door import KeyFinding, Scope

KEY_HEADER = b"x-plimsoll-key"
KEYS_ALONE = ("/v1/", "/ingest/")  # a session opens nothing there
KEY_OR_SESSION = "/api/v1/"
MISSING = KeyFinding(refusal=(401, NO_KEY))
MISSING_FOR_OTLP = KeyFinding(refusal=(401, f"{NO_KEY}, or X-Plimsoll-Key: plk_…"))
UNREADABLE = KeyFinding(refusal=(503, "Keys cannot be checked at the moment. Try again shortly."))
NOT_NEEDED = KeyFinding()


class KeyCheck(RecentAnswers[KeyFinding]):
    """Called by dashboard.front_door for requests that bring a body."""

    def __init__(self) -> None:
        super().__init__(unreadable=UNREADABLE, thread_name="key-check")

    async def __call__(self, scope: Scope) -> KeyFinding:
        path, headers = scope["path"], dict(scope["headers"])
        if not path.startswith((*KEYS_ALONE, KEY_OR_SESSION)):
            return NOT_NEEDED
        text = find_key_text(headers)
        if text:
            digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
            return await self.find(digest, lambda: look_up(text, name=digest.hex()))
        if path.startswith(KEYS_ALONE):
            return MISSING_FOR_OTLP
        return NOT_NEEDED if b"authorization" not in headers and has_session(headers) else MISSING


def find_key_text(headers: dict[bytes, bytes]) -> str:
    """As the views read it: exporters of OTLP may send `Bearer%20`."""
    if in_header := headers.get(KEY_HEADER, b"").decode("latin-1").strip():
        return in_header
    scheme, _, token = unquote(headers.get(b"authorization", b"").decode("latin-1")).strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def has_session(headers: dict[bytes, bytes]) -> bool:
    """Whose session it is, if anybody's, is found out later."""
    return settings.SESSION_COOKIE_NAME.encode() in headers.get(b"cookie", b"")


def look_up(text: str, *, name: str) -> KeyFinding:
    try:
        find_key(text, now=timezone.now())
    except KeyRefused as refusal:
        return KeyFinding(refusal=(401, str(refusal)))
    return KeyFinding(client=f"key {name}")
