"""What a team keeps secret at rest, its key for the model's API first: sealed under a key that is made of the secret
key and of what it is for, bound to its team."""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from compaction.errors import RunError
from dashboard.models import Team

HINT_LENGTH = 4
_FORM = b"\x01"  # should the way of sealing ever change, older ones can still be told apart
_NONCE_BYTES = 12
MODEL_API = b"plimsoll: keys of teams for the model's API"


class KeyUnreadable(RunError):
    """What is stored cannot be opened any more. The message is for the people of the team."""

    reason = "key_unreadable"

    def __init__(self) -> None:
        super().__init__(
            "The stored API key cannot be read because this installation's secret key has changed since it was set. "
            "Set the API key again."
        )


def seal_key(team: Team, key: str, *, purpose: bytes = MODEL_API) -> bytes:
    """The same key sealed twice gives other bytes, and another team's row cannot open it."""
    nonce = os.urandom(_NONCE_BYTES)
    return _FORM + nonce + _open_box(purpose).encrypt(nonce, key.encode(), _name_team(team))


def open_key(team: Team, sealed: bytes | memoryview, *, purpose: bytes = MODEL_API) -> str:
    """Raises KeyUnreadable."""
    data = bytes(sealed)
    nonce, locked = data[1 : 1 + _NONCE_BYTES], data[1 + _NONCE_BYTES :]
    if data[:1] != _FORM or len(nonce) < _NONCE_BYTES:
        raise KeyUnreadable
    try:
        return _open_box(purpose).decrypt(nonce, locked, _name_team(team)).decode()
    except InvalidTag:
        raise KeyUnreadable from None


def hint_at(key: str) -> str:
    """Enough to tell keys apart, of no use for anything else."""
    return f"…{key[-HINT_LENGTH:]}"


def _open_box(purpose: bytes) -> AESGCM:
    secret = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose)
    return AESGCM(secret.derive(settings.SECRET_KEY.encode()))


def _name_team(team: Team) -> bytes:
    return f"team {team.pk}".encode()
