"""Claude as the summariser. The only file that knows the SDK.

A fork repeats the captured request with its own version and betas; nothing but the prompt is new. The SDK's retries
are off: the engine tries twice, and this file waits between the tries where the API asks for it.
"""

import asyncio
import json
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

import httpx2
from anthropic import AnthropicError, APIConnectionError, APIStatusError, AsyncAnthropic, AsyncStream, Omit, Timeout
from django.conf import settings
from django.utils import timezone

from compaction.compactors.summary.answer import parse_answer, require_usable_answer
from compaction.errors import BadSummary, CompactionCancelled, RunError, SummarizerUnavailable
from compaction.llm.names import LONG_WINDOW_SUFFIX
from compaction.ports import KEEP_ALIVE_SECONDS, Monitor, SilentMonitor, SummaryAnswer, SummaryRequest, SummaryRoute
from compaction.transcripts.json_fields import get_count, get_fields, get_text, get_texts
from dashboard.models import Team
from dashboard.runs.answer_stream import AnswerStream, AnswerTooLarge, StreamError
from dashboard.runs.api_failures import Refusal, read_wait_seconds
from dashboard.runs.attempts import COUNT_PATH, AttemptReport, NoteAttempt
from dashboard.runs.fork_terms import ForkTerms
from dashboard.runs.native_requests import NativeTerms
from dashboard.runs.team_settings import find_key

MESSAGES_PATH, COUNT_TOKENS_PATH = "/v1/messages", "/v1/messages/count_tokens"
# What counting takes of a request; the rest only shapes the answer.
_COUNTED = frozenset(
    {"messages", "model", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control", "speed"}
)
_NEWS_EVERY_SECONDS = 1.0
# What an attempt is kept with when something that is no failure of the API ends it, such as a worker that must stop.
_INTERRUPTED = SummarizerUnavailable("the work on it was interrupted", reason="interrupted")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """`run_seconds` is for everything one summariser does, `try_seconds` for one request of it."""

    run_seconds: float = 1800
    try_seconds: float = 600
    idle_seconds: float = 180
    connect_seconds: float = 10
    count_seconds: float = 15
    wait_seconds: float = 2  # before a second try where the API does not say how long
    poll_seconds: float = 0.25


@dataclass(frozen=True, kw_only=True)
class ClaudeAccess:
    """Where the API is and what opens it. The key is in no text of this object."""

    key: str = field(repr=False)
    base_url: str


@dataclass(slots=True)
class _Call:
    """One request on its way."""

    path: str
    content: bytes
    model: str
    headers: Mapping[str, str]
    stream: AnswerStream = field(default_factory=AnswerStream)
    counted_tokens: int | None = None
    wait_seconds: float | None = None
    is_native: bool = False


def open_claude(team: Team, note_attempt: NoteAttempt, fork_terms: ForkTerms) -> "ClaudeSummarizer":
    """With the key in force for a team. Raises NoKey and KeyUnreadable, which end a run."""
    access = ClaudeAccess(key=find_key(team), base_url=settings.ANTHROPIC_BASE_URL)
    return ClaudeSummarizer(access, note_attempt, fork_terms=fork_terms)


def open_native(team: Team, note_attempt: NoteAttempt, native: NativeTerms) -> "ClaudeSummarizer":
    """The same API, asked to compact by itself. Raises NoKey and KeyUnreadable."""
    access = ClaudeAccess(key=find_key(team), base_url=settings.ANTHROPIC_BASE_URL)
    return ClaudeSummarizer(access, note_attempt, native=native)


class ClaudeSummarizer:
    """Implements compaction.ports.Summarizer; every request it makes is told to `note_attempt`, cancelled ones too."""

    def __init__(
        self,
        access: ClaudeAccess,
        note_attempt: NoteAttempt,
        *,
        fork_terms: ForkTerms | None = None,
        native: NativeTerms | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._access = access
        self._note_attempt = note_attempt
        self._fork_terms = fork_terms or ForkTerms()
        self._native = native
        self._limits = limits or Limits()
        self._ends_at = time.monotonic() + self._limits.run_seconds
        self._ready_at = 0.0

    def summarize(self, request: SummaryRequest, monitor: Monitor) -> SummaryAnswer:
        """One request, streamed. Waits first where the last answer asked for it."""
        call = self._prepare(request)
        self._wait_turn(monitor)
        started_at, started = timezone.now(), time.monotonic()
        failure: RunError | None = _INTERRUPTED
        try:
            self._perform(call, self._stream(call), monitor, limit_seconds=self._limits.try_seconds)
            answer = _make_answer(call, time.monotonic() - started)
            failure = _judge(answer, request)
        except RunError as error:
            failure = error
            raise
        finally:
            self._note_attempt(_report(call, request.route.value, started_at, time.monotonic() - started, failure))
        return answer

    def count_tokens(self, body: Mapping[str, object], monitor: Monitor | None = None) -> int:
        """The tokens of a request's prompt as the API counts them. Free of charge, but still a request."""
        kept = {name: value for name, value in body.items() if name in _COUNTED}
        call = _Call(COUNT_TOKENS_PATH, _write_json(_spell_model(kept)), str(kept.get("model") or ""), {})
        self._wait_turn(monitor or SilentMonitor())
        started_at, started = timezone.now(), time.monotonic()
        failure: RunError | None = _INTERRUPTED
        try:
            limit = self._limits.count_seconds
            self._perform(call, self._count(call), monitor or SilentMonitor(), limit_seconds=limit)
            if call.counted_tokens is None:
                raise SummarizerUnavailable(
                    "the API's answer holds no count of tokens", is_retryable=False, reason="bad_answer"
                )
            failure = None
        except RunError as error:
            failure = error
            raise
        finally:
            self._note_attempt(_report(call, COUNT_PATH, started_at, time.monotonic() - started, failure))
        return call.counted_tokens

    # --- the request -------------------------------------------------------------------------------------------------

    def _prepare(self, request: SummaryRequest) -> _Call:
        """A fork's body stays as it is, but for betas that its source wrote into the body: they are a header."""
        if self._native is not None:
            body, headers = _spell_model(self._native.shape_body(request)), self._native.headers
            return _Call(MESSAGES_PATH, _write_json(body), str(body.get("model") or ""), headers, is_native=True)
        body, headers = dict(request.body), {}
        if request.route is SummaryRoute.FORK:
            betas = get_texts(body, "betas") or self._fork_terms.betas
            body.pop("betas", None)
            headers = {"anthropic-version": self._fork_terms.version}
            if betas:
                headers["anthropic-beta"] = ",".join(betas)
        else:
            body = _spell_model(body)
        return _Call(MESSAGES_PATH, _write_json(body), str(body.get("model") or ""), headers)

    def _open_client(self) -> AsyncAnthropic:
        return AsyncAnthropic(
            api_key=self._access.key,
            base_url=self._access.base_url,
            max_retries=0,
            # Silence is watched here, where a ping counts as a sign of life.
            timeout=Timeout(None, connect=self._limits.connect_seconds),
            open_telemetry=False,
        )

    async def _stream(self, call: _Call) -> None:
        async with self._open_client() as client:
            stream = await client.post(
                call.path,
                cast_to=object,
                content=call.content,
                options={"headers": _as_options(call.headers), "follow_redirects": False},
                stream=True,
                stream_cls=AsyncStream[object],
            )
            async with stream:
                call.stream.note_sign_of_life()
                call.stream.request_id = stream.response.headers.get("request-id", "")
                async for event in AsyncStream.raw_events(stream.response):
                    call.stream.note_sign_of_life()
                    if event.data and event.event != "ping":
                        fields = event.json()
                        call.stream.take(fields if isinstance(fields, dict) else {})

    async def _count(self, call: _Call) -> None:
        async with self._open_client() as client:
            counted = await client.post(
                call.path,
                cast_to=object,
                content=call.content,
                options={"headers": _as_options(call.headers), "follow_redirects": False},
            )
            call.counted_tokens = get_count(cast("Mapping[str, object]", counted), "input_tokens")

    # --- waiting for it ----------------------------------------------------------------------------------------------

    def _perform(
        self, call: _Call, work: Coroutine[object, object, None], monitor: Monitor, *, limit_seconds: float
    ) -> None:
        """Runs the request in slices, so that between them a person can cancel and the monitor may use the database."""
        watch = _Watch(self._limits, monitor, ends_at=min(self._ends_at, time.monotonic() + limit_seconds))
        with asyncio.Runner() as runner:
            task = runner.get_loop().create_task(work)
            try:
                while not task.done():
                    watch.look(call.stream)
                    runner.run(_wait_for(task, self._limits.poll_seconds))
                task.result()
            except (AnthropicError, httpx2.HTTPError, StreamError, AnswerTooLarge, ValueError) as error:
                raise self._name_failure(error, call) from error

    def _name_failure(self, error: Exception, call: _Call) -> RunError:
        failure = _explain(error, call, self._access.key)
        if isinstance(failure, SummarizerUnavailable) and failure.is_retryable:
            wait = self._limits.wait_seconds if call.wait_seconds is None else call.wait_seconds
            self._ready_at = time.monotonic() + wait
            if self._ready_at >= self._ends_at:
                said = str(failure).removeprefix("The summary could not be made: ").rstrip(".")
                what = f"{said}, and asks to wait {wait:,.0f} seconds, which is longer than a run may take"
                return SummarizerUnavailable(what, is_retryable=False, reason=failure.reason)
        return failure

    def _wait_turn(self, monitor: Monitor) -> None:
        watch = _Watch(self._limits, monitor, ends_at=self._ends_at)
        stream = AnswerStream()
        while (left := self._ready_at - time.monotonic()) > 0:
            stream.note_sign_of_life()
            watch.look(stream)
            time.sleep(min(left, self._limits.poll_seconds))


@dataclass(slots=True)
class _Watch:
    """Looks after a request between two slices: cancelled, silent, too late; and says that it is alive."""

    limits: Limits
    monitor: Monitor
    ends_at: float
    _told_at: float = 0.0
    _told_tokens: int = 0

    def look(self, stream: AnswerStream) -> None:
        if self.monitor.is_cancelled():
            raise CompactionCancelled
        now = time.monotonic()
        if now >= self.ends_at:
            raise SummarizerUnavailable(
                "no whole answer came within the time a request may take", is_retryable=False, reason="timeout"
            )
        if now - stream.last_sign_at >= self.limits.idle_seconds:
            raise SummarizerUnavailable(
                f"nothing came from the API for {self.limits.idle_seconds:,.0f} seconds", reason="timeout"
            )
        is_news = stream.written_tokens != self._told_tokens
        if now - self._told_at >= (_NEWS_EVERY_SECONDS if is_news else KEEP_ALIVE_SECONDS / 3):
            self.monitor.keep_alive(stream.written_tokens)
            self._told_at, self._told_tokens = now, stream.written_tokens


async def _wait_for(task: "asyncio.Task[None]", seconds: float) -> None:
    await asyncio.wait({task}, timeout=seconds)


def _make_answer(call: _Call, duration_seconds: float) -> SummaryAnswer:
    stream = call.stream
    if not stream.message_id:
        what = "what answered does not speak the Messages API"
        raise SummarizerUnavailable(what, is_retryable=False, reason="bad_answer")
    if stream.stop_reason is None:
        what = "the answer ended without a stop reason, so it may be incomplete"
        raise SummarizerUnavailable(what, reason="no_stop_reason")
    block = stream.compaction_block if call.is_native else None
    if call.is_native and block is None and stream.stop_reason == "end_turn":
        what = "the API answered without compacting: the conversation is smaller than its threshold"
        raise SummarizerUnavailable(what, is_retryable=False, reason="not_compacted")
    return SummaryAnswer(
        text=stream.text if block is None else get_text(block, "content") or "",
        is_native=block is not None,
        block=block,
        stop_reason=stream.stop_reason,
        usage=stream.usage,
        model=stream.model or call.model,
        message_id=stream.message_id,
        duration_seconds=duration_seconds,
    )


def _judge(answer: SummaryAnswer, request: SummaryRequest) -> RunError | None:
    """What the engine will say of this answer: the attempt is kept with it."""
    try:
        require_usable_answer(answer)
        if not request.missing_sections:
            parse_answer(answer, request.variant)
    except BadSummary as error:
        return error
    return None


def _explain(error: Exception, call: _Call, key: str) -> RunError:
    if isinstance(error, APIStatusError):
        call.stream.request_id = error.request_id or call.stream.request_id
        headers = {name.lower(): value for name, value in error.response.headers.items()}
        call.wait_seconds = read_wait_seconds(headers, now=timezone.now())
        return _name_refusal(
            call, _read_refusal(error, headers, key), headers, status=error.status_code, error_code=_read_code(error)
        )
    if isinstance(error, StreamError):
        return _name_refusal(call, (error.error_type, error.message.replace(key, "[key]")), {}, status=200)
    if isinstance(error, AnswerTooLarge):
        return SummarizerUnavailable("the answer is far longer than any summary", is_retryable=False, reason="too_long")
    if isinstance(error, APIConnectionError | httpx2.HTTPError):
        what = "the connection broke in the middle of the answer" if call.stream.message_id else "no connection"
        return SummarizerUnavailable(f"{what} ({type(error.__cause__ or error).__name__})", reason="connection")
    what = f"the answer could not be read ({type(error).__name__})"
    return SummarizerUnavailable(what, is_retryable=False, reason="bad_answer")


def _read_refusal(error: APIStatusError, headers: Mapping[str, str], key: str) -> tuple[str, str]:
    """The type and the words of an error, in the API's form or in a gateway's."""
    body = error.body if isinstance(error.body, Mapping) else {}
    told = get_fields(body, "error") or body
    error_type = get_text(told, "type") or get_text(told, "__type") or headers.get("x-amzn-errortype", "")
    message = get_text(told, "message") or (error.body if isinstance(error.body, str) else "")
    return error_type, message.replace(key, "[key]")


def _read_code(error: APIStatusError) -> str:
    body = error.body if isinstance(error.body, Mapping) else {}
    return get_text(get_fields(get_fields(body, "error"), "details"), "error_code") or ""


def _name_refusal(
    call: _Call, told: tuple[str, str], headers: Mapping[str, str], *, status: int, error_code: str = ""
) -> RunError:
    refusal = Refusal(
        status=status,
        error_type=told[0],
        message=told[1],
        model=call.model,
        size_bytes=len(call.content),
        headers=headers,
        error_code=error_code,
    )
    return refusal.name()


def _report(call: _Call, path: str, at: datetime, duration_seconds: float, failure: RunError | None) -> AttemptReport:
    return AttemptReport(
        path=path,
        model=call.stream.model or call.model,
        at=at,
        duration_seconds=duration_seconds,
        usage=call.stream.usage,
        message_id=call.stream.message_id,
        request_id=call.stream.request_id,
        failure_code=failure.reason if failure else "",
        failure_sentence=str(failure) if failure else "",
    )


def _spell_model(body: Mapping[str, object]) -> dict[str, object]:
    """The client marks long windows in the model's name; the API does not know that mark."""
    model = body.get("model")
    return {**body, "model": model.removesuffix(LONG_WINDOW_SUFFIX)} if isinstance(model, str) else dict(body)


def _as_options(headers: Mapping[str, str]) -> dict[str, str | Omit]:
    return dict(headers)


def _write_json(body: Mapping[str, object]) -> bytes:
    """Keys in their order and numbers as they are. Half a surrogate pair has no UTF-8: then everything is escaped."""
    try:
        return _dump(body, is_escaped=False).encode()
    except UnicodeEncodeError:
        return _dump(body, is_escaped=True).encode()
    except (TypeError, ValueError) as error:
        what = f"the request cannot be written as JSON ({error})"
        raise SummarizerUnavailable(what, is_retryable=False, reason="bad_request") from error


def _dump(body: Mapping[str, object], *, is_escaped: bool) -> str:
    return json.dumps(body, ensure_ascii=is_escaped, separators=(",", ":"), allow_nan=False, default=_unwrap)


def _unwrap(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no place in a request")
