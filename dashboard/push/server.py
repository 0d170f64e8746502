"""The server, as a developer's machine sees it: rules asked for, batches sent, every refusal given a meaning."""

import base64
import binascii
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2

from dashboard.ingest.observed import Rules
from dashboard.ingest.pushed_lines import FORMAT, MSGPACK
from dashboard.ingest.redaction import find_unusable
from dashboard.version import VERSION

PATH = "/api/v1/ingest/lines"
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 120.0  # a first batch of many sessions is worked out before it is acknowledged
LONGEST_WAIT_SECONDS = 3600.0
_LONGEST_SENTENCE = 300


class Away(Exception):
    """Not now: what was to be sent still waits. The message is for people."""

    def __init__(self, sentence: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after_seconds = retry_after_seconds


class WrongSetup(Exception):
    """Trying again changes nothing before somebody changes key or address."""


class TooLarge(Exception):
    """The server, or something before it, takes smaller bodies alone."""


class BatchRefused(Exception):
    """The server cannot use this batch; others it may."""


@dataclass(frozen=True, slots=True)
class TeamRules:
    team: str
    developer: str
    store: str
    version: int
    rules: Rules


@dataclass(frozen=True, slots=True)
class Receipt:
    """A batch was taken, by these rules, into this database; older servers do not name it."""

    version: int
    store: str | None
    refused_lines: int = 0  # dropped, because their sessions belong to another account

    def is_of(self, told: TeamRules) -> bool:
        return self.version == told.version and self.store in (None, told.store)


class Server:
    def __init__(
        self,
        url: str,
        key: str,
        *,
        team: str = "",
        is_metrics_only: bool = False,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.url = url
        self._is_metrics_only = is_metrics_only
        self._client = httpx2.Client(
            base_url=url,
            params={"team": team} if team else {},
            headers={"Authorization": f"Bearer {key}", "User-Agent": f"plimsoll-watch/{VERSION}"},
            timeout=httpx2.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
            transport=transport,
            follow_redirects=False,  # a key goes to the address it was meant for
        )

    def close(self) -> None:
        self._client.close()

    def ask_rules(self) -> TeamRules:
        """Raises Away or WrongSetup."""
        response = self._ask("GET")
        if response.status_code in (404, 405, 422):
            sentence = _read_sentence(response)
            raise WrongSetup(sentence or f"{self.url} is not a Plimsoll server that accepts data from this program.")
        self._check(response)
        told = _read_rules(response, self.url)
        return replace(told, rules=replace(told.rules, keeps_content=False)) if self._is_metrics_only else told

    def send(self, body: bytes) -> Receipt:
        """Everything is committed. Raises Away, WrongSetup, TooLarge, BatchRefused."""
        headers = {"Content-Type": MSGPACK, "Content-Encoding": "gzip"}
        response = self._ask("POST", content=body, headers=headers)
        if response.status_code == 413:
            raise TooLarge
        if response.status_code in (400, 415, 422):
            raise BatchRefused(_read_sentence(response) or f"HTTP {response.status_code}")
        self._check(response)
        told = _read_json(response)
        version, store = told.get("version"), told.get("store")
        if not isinstance(version, int):
            raise Away(
                "the response is not from Plimsoll"
            )  # a page of something in between, which acknowledges nothing
        refused = told.get("refused_lines")
        return Receipt(version, store if isinstance(store, str) else None, refused if isinstance(refused, int) else 0)

    def _ask(self, method: str, **options: Any) -> httpx2.Response:
        try:
            return self._client.request(method, PATH, **options)
        except httpx2.TransportError as error:
            raise Away(_spell_failure(error)) from error

    def _check(self, response: httpx2.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        told = _read_sentence(response)
        if status == 401:
            raise WrongSetup("The server rejected the API key: it is mistyped, revoked or expired.")
        if status == 403:
            raise WrongSetup(f"The API key is not allowed to send: {told or 'it needs the scope ingest.'}")
        if response.is_redirect:
            raise WrongSetup(
                f"The server redirects to another URL. Use {response.headers.get('Location', '')[:200]!r}."
            )
        raise Away(f"HTTP {status} {told}".strip(), _read_wait(response))


def _spell_failure(error: Exception) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if "certificate" in str(cause).lower():
            return f"the certificate is not trusted ({cause}); set SSL_CERT_FILE to use your own CA"
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__


def _read_json(response: httpx2.Response) -> dict[str, Any]:
    try:
        told = response.json()
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _read_sentence(response: httpx2.Response) -> str:
    told = _read_json(response).get("detail")
    return told[:_LONGEST_SENTENCE] if isinstance(told, str) else ""


def _read_wait(response: httpx2.Response) -> float | None:
    """Retry-After, in either of its forms."""
    told = response.headers.get("Retry-After", "").strip()
    if told.isascii() and told.isdecimal():
        return min(float(told[:9]), LONGEST_WAIT_SECONDS)
    try:
        seconds = (parsedate_to_datetime(told) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):
        return None
    return min(max(0.0, seconds), LONGEST_WAIT_SECONDS)


def _read_rules(response: httpx2.Response, url: str) -> TeamRules:
    told = _read_json(response)
    try:
        if told["format"] != FORMAT:
            raise WrongSetup(f"The server uses format {told['format']}, this program {FORMAT}. Update the older one.")
        patterns = {str(name): str(pattern) for name, pattern in dict(told["own_patterns"]).items()}
        rules = Rules(
            # An older server may have patterns that cannot be used here: what they should redact stays here then.
            keeps_content=told["keeps_content"] is True and not find_unusable(patterns),
            content_since=datetime.fromisoformat(since) if (since := told.get("content_since")) else None,
            digest_key=base64.b64decode(told["digest_key"], validate=True),
            own_patterns=patterns,
            # Older servers have no rules that can be switched off.
            disabled_rules=frozenset(map(str, told.get("disabled_rules", ()))),
            redaction_version=int(told.get("redaction_version", 0)),
        )
        return TeamRules(str(told["team"]), str(told["developer"]), str(told["store"]), int(told["version"]), rules)
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise WrongSetup(f"{url} does not respond like a Plimsoll server.") from error
