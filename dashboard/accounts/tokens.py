"""Random texts that open something: only their SHA-256 is stored, they are compared in constant time.

Secrets that sign are made here too; those are needed again, so they are sealed instead.
"""

import hashlib
import hmac
import re
import secrets

# Each kind of token says what it is, so that logs can mask it and a secret scanner can name it.
KEY, SIGN_IN_LINK, INVITATION, WEBHOOK_SECRET = KINDS = "plk_", "pls_", "pli_", "plw_"
_RANDOM_PART = re.compile(r"[A-Za-z0-9_-]{43}")


def make_token(kind: str) -> str:
    return kind + secrets.token_urlsafe(32)


def is_well_formed(token: str, kind: str) -> bool:
    """Return whether `make_token(kind)` could have made it. Other texts, such as one with a NUL, need no lookup."""
    return token.startswith(kind) and _RANDOM_PART.fullmatch(token, len(kind)) is not None


def digest(token: str) -> bytes:
    """Plain SHA-256 suffices: the tokens hold 256 random bits, there is nothing to guess."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def matches(token: str, stored_digest: bytes | memoryview) -> bool:
    return hmac.compare_digest(digest(token), bytes(stored_digest))
