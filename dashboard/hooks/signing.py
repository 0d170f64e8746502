"""The signature of what is sent: receivers can tell that it comes from here, is whole, and is not old."""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime

SIGNATURE, EVENT, EVENT_ID = "Plimsoll-Signature", "Plimsoll-Event", "Plimsoll-Event-Id"


def sign(secret: str, body: bytes, *, at: datetime) -> str:
    """`t=<unix seconds>,v1=<hex of HMAC-SHA256 over "t.body">`."""
    seconds = int(at.timestamp())
    mac = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256)
    return f"t={seconds},v1={mac.hexdigest()}"


def write_headers(secret: str, body: bytes, *, event: str, event_id: str, at: datetime) -> Mapping[str, str]:
    """`event_id` stays the same when a notice is sent again."""
    return {EVENT: event, EVENT_ID: event_id, SIGNATURE: sign(secret, body, at=at)}
