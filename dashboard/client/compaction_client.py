"""Plimsoll from an agent's own code: may I go on, and compact these messages. Only the standard library is needed.

client = CompactionClient("http://127.0.0.1:8000", key)
check = client.check(model=model, usage=answer.usage.to_dict())
if check.is_compaction_due:
    messages = client.compact(messages, model=model, kind=check.compact_kind).messages
"""

import gzip
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

ApiMessage = Mapping[str, Any]
_DUE = frozenset({"micro", "session-memory", "full", "block"})
_ENDED = frozenset({"done", "failed", "cancelled"})
_PACKED_FROM_BYTES = 64 * 1024  # smaller bodies are not worth it
_NOT_NOW = frozenset({408, 429})  # and everything from 500 on: another try may end well


class PlimsollError(Exception):
    """The question could not be answered; an agent may go on without the answer."""


class PlimsollRefused(PlimsollError):
    """An answer with a sentence: wrong key, bad values, nothing to compact. Asking again would end the same way.
    `status` is that of the answer, `code` names the reason where there is one."""

    def __init__(self, status: int, sentence: str, code: str = "") -> None:
        super().__init__(sentence)
        self.status, self.code = status, code


class PlimsollAway(PlimsollError):
    """No answer, one that makes no sense, or "not now"; `retry_after_seconds` where the server said when."""

    def __init__(self, sentence: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True)
class CheckAnswer:
    """`action`: none, warn, micro, session-memory, full, block. `lines` is None where the window is not known."""

    action: str
    level: str
    used_tokens: int
    percent_left: int | None
    sentence: str
    lines: Mapping[str, Any] | None
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def is_compaction_due(self) -> bool:
        return self.action in _DUE

    @property
    def compact_kind(self) -> str:
        """What to ask `compact` for: where nothing compacts by itself, a full conversation is compacted whole."""
        is_auto_on = self.lines is None or self.lines["is_auto_on"]
        return "full" if self.action == "block" and not is_auto_on else "auto"


@dataclass(frozen=True)
class CompactAnswer:
    """`messages` is what to go on with. Sizes are None for a run that a model wrote: its page tells them."""

    decision: str
    messages: list[dict[str, Any]]
    before_tokens: int | None
    after_tokens: int | None
    raw: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class CompactionClient:
    """`key` needs the scope compact; for runs read and content too, as their result is content. A server that says when
    to ask again is asked again then, for `timeout_seconds` in all."""

    url: str
    key: str = field(repr=False)
    timeout_seconds: float = 30.0
    run_timeout_seconds: float = 900.0
    poll_seconds: float = 1.0
    sleep: Callable[[float], object] = time.sleep

    def check(
        self,
        *,
        model: str = "",
        usage: Mapping[str, Any] | None = None,
        messages: Sequence[ApiMessage] = (),
        session: str = "",
        **more: object,
    ) -> CheckAnswer:
        """Of an agent by `model` and its last `usage` (or its `messages`), or of a `session` Plimsoll knows."""
        own = {"model": model or None, "usage": usage, "messages": list(messages) or None, "session": session or None}
        body = {name: value for name, value in {**own, **more}.items() if value is not None}
        told = self._send("POST", "/api/v1/check", body)
        names = ("action", "level", "used_tokens", "percent_left", "sentence", "lines")
        return CheckAnswer(**{name: told[name] for name in names}, raw=told)

    def compact(
        self,
        messages: Sequence[ApiMessage],
        *,
        model: str,
        usage: Mapping[str, Any] | None = None,
        kind: str = "auto",
        summarizer: str = "extractive",
        **more: object,
    ) -> CompactAnswer:
        """The messages to go on with. Where a run is started, as with `summarizer="claude"`, it is waited for."""
        body = {"messages": list(messages), "model": model, "kind": kind, "summarizer": summarizer, **more}
        told = self._send("POST", "/api/v1/compact", body | ({"usage": usage} if usage else {}))
        if "run" in told:
            return self._wait_for_run(told)
        names = ("decision", "messages", "before_tokens", "after_tokens")
        return CompactAnswer(**{name: told[name] for name in names}, raw=told)

    def lint(self, request: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, str]]:
        """What keeps a request from being cached well: rule, path and sentence of each finding."""
        told = self._send("POST", "/api/v1/prompt/lint", {"request": request, "earlier": list(earlier)})
        found: list[dict[str, str]] = told["findings"]
        return found

    def _wait_for_run(self, started: Mapping[str, Any]) -> CompactAnswer:
        give_up_at = time.monotonic() + self.run_timeout_seconds
        run = started
        while run["state"] not in _ENDED:
            if time.monotonic() > give_up_at:
                raise PlimsollAway(f"Run {started['run']} has not ended after {self.run_timeout_seconds:g} s.")
            self.sleep(self.poll_seconds)
            run = self._send("GET", started["url"])
        if run["state"] != "done":
            failure = run.get("failure") or {}
            sentence = failure.get("sentence") or f"Run {started['run']} was {run['state']}."
            raise PlimsollRefused(409, sentence, failure.get("code", run["state"]))
        messages = self._send("GET", started["messages_url"])["messages"]
        return CompactAnswer("compacted in full", messages, run["before_tokens"], run["after_tokens"], raw=run)

    def _send(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        if data is not None and len(data) >= _PACKED_FROM_BYTES:
            data, headers["Content-Encoding"] = gzip.compress(data, compresslevel=1), "gzip"
        request = Request(self.url.rstrip("/") + path, data, headers, method=method)  # noqa: S310 (the caller's own)
        give_up_at = time.monotonic() + self.timeout_seconds
        while True:
            try:
                return self._ask(request)
            except PlimsollAway as away:
                wait_seconds = away.retry_after_seconds
                if wait_seconds is None or time.monotonic() + wait_seconds > give_up_at:
                    raise
                self.sleep(wait_seconds)

    def _ask(self, request: Request) -> dict[str, Any]:
        try:
            with urlopen(request, timeout=self.timeout_seconds) as answer:  # noqa: S310
                told = json.load(answer)
        except HTTPError as error:
            raise _read_refusal(error) from error
        except (OSError, HTTPException, ValueError) as error:
            raise PlimsollAway(f"Plimsoll at {self.url} did not respond: {error}.") from error
        if not isinstance(told, dict):
            raise PlimsollAway(f"The server at {self.url} is not Plimsoll.")
        return told


def _read_refusal(error: HTTPError) -> PlimsollError:
    try:
        told = json.load(error)
    except (OSError, HTTPException, ValueError):
        told = None  # a proxy in between, or half an answer: the status alone speaks
    told = told if isinstance(told, dict) else {}
    sentence = str(told.get("detail") or f"Plimsoll responded with HTTP {error.code}.")
    if error.code in _NOT_NOW or error.code >= 500:
        wait = error.headers.get("Retry-After", "")
        return PlimsollAway(sentence, float(wait) if wait.isdecimal() else None)
    return PlimsollRefused(error.code, sentence, str(told.get("code", "")))
