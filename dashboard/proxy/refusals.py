"""Answers of the proxy itself, in the shape the API's clients know, each with a sentence that names Plimsoll."""

import json
from dataclasses import dataclass

from dashboard.front_door import Send


@dataclass(frozen=True)
class Refusal:
    """A status, the API's word for it, and what a person reads."""

    status: int
    type: str
    sentence: str
    retry_after_seconds: int | None = None


NO_KEY = Refusal(
    401,
    "authentication_error",
    "Plimsoll: missing Plimsoll key with the proxy scope. Send it in the header X-Plimsoll-Key or in the URL "
    "(/proxy/k/KEY), in addition to your model provider's API key.",
)
UNKNOWN_KEY = Refusal(401, "authentication_error", "Plimsoll: the key is unknown, expired or revoked.")
NO_RIGHT = Refusal(
    403,
    "permission_error",
    "Plimsoll: this key is not allowed to use the proxy. It needs the scope proxy and an active owner.",
)
FROM_A_PAGE = Refusal(403, "permission_error", "Plimsoll: the proxy does not accept requests from web pages.")
NOT_ASKED_HERE = Refusal(
    403, "permission_error", "Plimsoll: without a key, the proxy only accepts local requests to its own address."
)
KEYS_UNREADABLE = Refusal(
    503, "api_error", "Plimsoll: keys cannot be checked at the moment. Try again shortly.", retry_after_seconds=2
)
TOO_MANY_AT_ONCE = Refusal(
    503, "overloaded_error", "Plimsoll: too many calls at once. Try again shortly.", retry_after_seconds=1
)
TOO_MANY_SLOW = Refusal(
    503,
    "overloaded_error",
    "Plimsoll: too many requests are arriving slowly at once. Try again shortly.",
    retry_after_seconds=1,
)
UNREACHABLE = Refusal(502, "api_error", "Plimsoll: the upstream is unreachable.")
BROKEN_ANSWER = Refusal(502, "api_error", "Plimsoll: the upstream closed the connection or sent an invalid response.")
UPSTREAM_SILENT = Refusal(504, "timeout_error", "Plimsoll: the upstream timed out.")
CALLER_SILENT = Refusal(408, "timeout_error", "Plimsoll: the request body was not received in time.")


def too_large(limit_bytes: int) -> Refusal:
    return Refusal(
        413, "request_too_large", f"Plimsoll: the request is larger than {limit_bytes // (1024 * 1024)} MiB."
    )


def over_quota(wait_seconds: int) -> Refusal:
    return Refusal(
        429,
        "rate_limit_error",
        "Plimsoll: this key exceeded its calls per minute. The request was not forwarded.",
        retry_after_seconds=wait_seconds,
    )


def not_found(sentence: str) -> Refusal:
    return Refusal(404, "not_found_error", sentence)


def bad_path(sentence: str) -> Refusal:
    return Refusal(400, "invalid_request_error", sentence)


async def send_refusal(send: Send, refusal: Refusal) -> None:
    told = {"type": "error", "error": {"type": refusal.type, "message": refusal.sentence}}
    body = json.dumps(told).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    if refusal.retry_after_seconds is not None:
        headers.append((b"retry-after", str(refusal.retry_after_seconds).encode()))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
