"""Claude as the summariser, against a Messages API on the loopback: each failure, waiting, cancelling, counting."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pytest_django import Settings

from compaction.compactors.summary.prompt import SECTIONS, build_prompt
from compaction.errors import (
    CompactionCancelled,
    PromptTooLong,
    RunError,
    SummarizerUnavailable,
)
from compaction.ports import Monitor, SilentMonitor, SummaryRequest, SummaryRoute, Variant
from dashboard.runs.answer_stream import LARGEST_ANSWER_CHARACTERS
from dashboard.runs.api_failures import read_wait_seconds
from dashboard.runs.attempts import AttemptReport
from dashboard.runs.claude import ClaudeAccess, ClaudeSummarizer, Limits, open_claude
from dashboard.runs.fork_terms import ForkTerms
from dashboard.runs.settings_changes import set_key
from tests.builders import make_team
from tests.fakes import replies
from tests.fakes.messages_api import MessagesApi
from tests.fakes.replies import Ending, Reply
from tests.services import free_port

KEY = "sk-ant-api03-loopback-only-0000"
QUICK = Limits(poll_seconds=0.02, wait_seconds=0.05, idle_seconds=5, try_seconds=10, run_seconds=20)


@dataclass
class Watcher(SilentMonitor):
    """Writes signs of life down, and cancels once it was asked so many seconds after it was made."""

    cancel_after: float | None = None
    signs: list[int] = field(default_factory=list)
    made_at: float = field(default_factory=time.monotonic)

    def keep_alive(self, output_tokens: int) -> None:
        self.signs.append(output_tokens)

    def is_cancelled(self) -> bool:
        return self.cancel_after is not None and time.monotonic() - self.made_at >= self.cancel_after


@dataclass
class Asked:
    """A summariser and everything it told of."""

    claude: ClaudeSummarizer
    attempts: list[AttemptReport]

    def fail(self, request: SummaryRequest, monitor: Monitor | None = None) -> RunError:
        with pytest.raises(RunError) as caught:
            self.claude.summarize(request, monitor or SilentMonitor())
        return caught.value


Ask = Callable[..., Asked]


@pytest.fixture
def ask(messages_api: MessagesApi) -> Ask:
    def make(limits: Limits = QUICK, *, base_url: str = "", terms: ForkTerms | None = None) -> Asked:
        attempts: list[AttemptReport] = []
        access = ClaudeAccess(key=KEY, base_url=base_url or messages_api.url)
        return Asked(ClaudeSummarizer(access, attempts.append, limits=limits, fork_terms=terms), attempts)

    return make


def plain(**fields: object) -> SummaryRequest:
    prompt = build_prompt(Variant.FULL)
    said = [{"type": "text", "text": "Please moor /harbour/boat.py."}, {"type": "text", "text": prompt}]
    body = {
        "model": "claude-haiku-5-5",
        "max_tokens": 20_000,
        "stream": True,
        "messages": [{"role": "user", "content": said}],
        **fields,
    }
    return SummaryRequest(variant=Variant.FULL, route=SummaryRoute.PLAIN, entries=(), prompt=prompt, body=body)


def test_good_answer_comes_back_whole_with_its_usage_and_one_attempt(messages_api: MessagesApi, ask: Ask) -> None:
    asked = ask()
    answer = asked.claude.summarize(plain(), SilentMonitor())
    assert answer.stop_reason == "end_turn"
    assert all(name in answer.text for name in SECTIONS)
    assert "Please moor /harbour/boat.py." in answer.text
    assert (answer.message_id, answer.model) == ("msg_0001", "claude-haiku-5-5")
    assert answer.usage.input_tokens > 0
    assert answer.usage.output_tokens == len(answer.text.encode()) // 4 + 1
    [attempt] = asked.attempts
    assert (attempt.path, attempt.model, attempt.message_id) == ("plain", "claude-haiku-5-5", "msg_0001")
    assert (attempt.request_id, attempt.failure_code, attempt.usage) == ("req_0001", "", answer.usage)
    assert 0 < attempt.duration_seconds < 5
    [sent] = messages_api.messages
    assert sent.key == KEY
    assert sent.headers["anthropic-version"] == "2026-10-21"
    assert "anthropic-beta" not in sent.headers


def test_mark_of_a_long_window_is_not_sent_in_the_models_name(messages_api: MessagesApi, ask: Ask) -> None:
    ask().claude.summarize(plain(model="claude-opus-5-5[1m]"), SilentMonitor())
    assert messages_api.messages[0].body["model"] == "claude-opus-5-5"


def test_half_a_surrogate_pair_is_escaped_and_not_a_crash(messages_api: MessagesApi, ask: Ask) -> None:
    content = [{"role": "user", "content": "half \ud83d of a pair"}]
    ask().claude.summarize(plain(messages=content), SilentMonitor())
    assert b"\\ud83d" in messages_api.messages[0].raw


def test_request_that_is_no_json_is_refused_before_it_is_sent(messages_api: MessagesApi, ask: Ask) -> None:
    failure = ask().fail(plain(metadata={"ratio": float("nan")}))
    assert isinstance(failure, SummarizerUnavailable)
    assert (failure.reason, failure.is_retryable) == ("bad_request", False)
    assert messages_api.requests == []


@pytest.mark.django_db
def test_team_is_asked_for_with_its_key_at_the_operators_address(messages_api: MessagesApi, settings: Settings) -> None:
    team = make_team("Harbour", owner="olga")
    set_key(team, KEY, by=None)
    messages_api.known_key, settings.ANTHROPIC_BASE_URL = KEY, f"{messages_api.url}/"
    attempts: list[AttemptReport] = []
    assert open_claude(team, attempts.append, ForkTerms()).summarize(plain(), SilentMonitor()).stop_reason == "end_turn"
    assert [attempt.failure_code for attempt in attempts] == [""]


def test_attempt_that_something_else_ends_is_not_told_as_a_success(messages_api: MessagesApi, ask: Ask) -> None:
    class Stopping(SilentMonitor):
        def keep_alive(self, output_tokens: int) -> None:
            raise KeyboardInterrupt(output_tokens)

    asked = ask()
    with pytest.raises(KeyboardInterrupt):
        asked.claude.summarize(plain(), Stopping())
    assert [attempt.failure_code for attempt in asked.attempts] == ["interrupted"]


# --- every failure is told apart -------------------------------------------------------------------------------------

UNAVAILABLE = [
    (replies.WRONG_KEY, "authentication", False, "does not accept the key"),
    (replies.NO_CREDIT, "billing", False, "no credit left"),
    (replies.NOT_ALLOWED, "permission", False, "does not have permission"),
    (replies.NO_SUCH_MODEL, "model_not_found", False, "no model claude-haiku-5-5"),
    (replies.BAD_REQUEST, "bad_request", False, "tools.0.name: Field required"),
    (replies.RATE_LIMITED, "rate_limited", True, "used up what the API allows"),
    (replies.BROKEN, "api_error", True, "the API failed (500)"),
    (replies.TIMED_OUT, "timeout", True, "gave up before it had an answer"),
    (replies.OVERLOADED, "overloaded", True, "is overloaded right now"),
    (Reply(status=503, message="no healthy upstream"), "api_error", True, "no healthy upstream"),
    (Reply(status=418, message="a teapot"), "api_error", False, "a teapot"),
]


@pytest.mark.parametrize(("reply", "code", "is_retryable", "words"), UNAVAILABLE)
def test_refusal_has_its_own_code_and_sentence(
    messages_api: MessagesApi, ask: Ask, reply: Reply, code: str, is_retryable: object, words: str
) -> None:
    messages_api.script(reply)
    asked = ask()
    failure = asked.fail(plain())
    assert isinstance(failure, SummarizerUnavailable)
    assert (failure.reason, failure.is_retryable) == (code, is_retryable)
    assert str(failure).startswith("The summary could not be made: ")
    assert words in str(failure)
    assert len(messages_api.requests) == 1, "the SDK's own retries are off"
    [attempt] = asked.attempts
    assert (attempt.failure_code, attempt.failure_sentence) == (code, str(failure))
    assert attempt.request_id == "req_0001"


@pytest.mark.parametrize("wording", list(replies.TOO_LONG))
def test_prompt_too_long_is_read_in_every_providers_words(messages_api: MessagesApi, ask: Ask, wording: str) -> None:
    messages_api.script(replies.TOO_LONG[wording])
    asked = ask()
    failure = asked.fail(plain())
    assert isinstance(failure, PromptTooLong)
    has_figures = any(sign.isdigit() for sign in replies.TOO_LONG[wording].message)
    assert (failure.gap_tokens is not None) == has_figures
    if wording == "first party":
        assert (failure.prompt_tokens, failure.maximum_tokens) == (200_251, 200_000)
        assert "200,251 tokens, 200,000 are allowed" in str(failure)
    assert asked.attempts[0].failure_code == "prompt_too_long"


def test_too_many_bytes_is_a_prompt_that_can_be_shrunk(messages_api: MessagesApi, ask: Ask) -> None:
    messages_api.script(replies.TOO_LARGE)
    asked = ask()
    failure = asked.fail(plain())
    assert isinstance(failure, PromptTooLong)
    assert f"{len(messages_api.messages[0].raw):,} bytes" in str(failure)
    assert asked.attempts[0].failure_code == "too_large"


BROKEN_STREAMS = [
    (replies.CUT, "connection", "broke in the middle of the answer"),
    (replies.ENDED_EARLY, "no_stop_reason", "ended without a stop reason"),
    (replies.OVERLOADED_MIDWAY, "overloaded", "overloaded right now"),
    (Reply(ending=Ending.ERROR, error_type="api_error", message="Internal"), "api_error", "the API failed"),
]


@pytest.mark.parametrize(("reply", "code", "words"), BROKEN_STREAMS)
def test_broken_stream_may_be_tried_again_and_its_usage_is_kept(
    messages_api: MessagesApi, ask: Ask, reply: Reply, code: str, words: str
) -> None:
    messages_api.script(reply)
    asked = ask()
    failure = asked.fail(plain())
    assert isinstance(failure, SummarizerUnavailable)
    assert (failure.reason, failure.is_retryable) == (code, True)
    assert words in str(failure)
    [attempt] = asked.attempts
    assert attempt.usage.input_tokens > 100
    assert attempt.usage.output_tokens > 10, "what was written is paid, though only the start told of one token"
    assert attempt.message_id == "msg_0001"


def test_prompt_too_long_in_the_middle_of_a_stream_is_still_that(messages_api: MessagesApi, ask: Ask) -> None:
    words = "prompt is too long: 210000 tokens > 200000 maximum"
    messages_api.script(Reply(ending=Ending.ERROR, error_type="invalid_request_error", message=words, break_after=0))
    failure = ask().fail(plain())
    assert isinstance(failure, PromptTooLong)
    assert failure.gap_tokens == 10_000


JUDGED = [
    (replies.REFUSED, "refusal"),
    (replies.CUT_AT_LIMIT, "max_tokens"),
    (replies.WINDOW_FULL, "max_tokens"),
    (replies.TOOL_CALL, "tool_use"),
    (replies.EMPTY, "no_summary"),
    (replies.NO_SECTIONS, "no_summary"),
    (Reply(stop_reason="something_new"), "no_stop_reason"),
]


@pytest.mark.parametrize(("reply", "code"), JUDGED)
def test_answer_that_is_no_summary_is_kept_as_a_failed_attempt(
    messages_api: MessagesApi, ask: Ask, reply: Reply, code: str
) -> None:
    messages_api.script(reply)
    asked = ask()
    answer = asked.claude.summarize(plain(), SilentMonitor())
    assert answer.stop_reason == reply.stop_reason
    [attempt] = asked.attempts
    assert attempt.failure_code == code
    assert attempt.failure_sentence.endswith(".")
    assert attempt.usage == answer.usage


def test_nobody_at_the_address_is_a_connection_failure(ask: Ask) -> None:
    asked = ask(base_url=f"http://127.0.0.1:{free_port()}")
    failure = asked.fail(plain())
    assert isinstance(failure, SummarizerUnavailable)
    assert (failure.reason, failure.is_retryable) == ("connection", True)
    assert asked.attempts[0].failure_code == "connection"


def test_server_that_speaks_something_else_is_named_so(messages_api: MessagesApi, ask: Ask) -> None:
    failure = ask().fail(plain(stream=False))  # a whole message where a stream is read
    assert isinstance(failure, SummarizerUnavailable)
    assert (failure.reason, failure.is_retryable) == ("bad_answer", False)


def test_endless_answer_is_dropped(messages_api: MessagesApi, ask: Ask) -> None:
    messages_api.script(Reply(text="x" * (LARGEST_ANSWER_CHARACTERS + 1000)))
    failure = ask().fail(plain())
    assert failure.reason == "too_long"


def test_key_that_a_gateway_echoes_stays_out_of_the_sentence(messages_api: MessagesApi, ask: Ask) -> None:
    messages_api.script(replies.refuse(403, "permission_error", f"Incorrect API key provided: {KEY}.\nTry\x07again"))
    asked = ask()
    failure = asked.fail(plain())
    assert KEY not in str(failure) + repr(asked.attempts)
    assert "[key]. Try again" in str(failure)
    assert KEY not in repr(ClaudeAccess(key=KEY, base_url="https://api.example"))


def test_nothing_that_is_sent_and_no_key_is_logged(
    messages_api: MessagesApi, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("anthropic", "httpx2", "httpcore2"):
        logging.getLogger(name).addHandler(caplog.handler)
    with caplog.at_level(logging.DEBUG):
        ask().claude.summarize(plain(), SilentMonitor())
        messages_api.script(replies.WRONG_KEY)
        ask().fail(plain())
    assert KEY not in caplog.text
    assert "moor" not in caplog.text
    assert "v1/messages" not in caplog.text


# --- time ------------------------------------------------------------------------------------------------------------


def test_slow_drip_with_pings_outlives_the_idle_limit_and_shows_progress(messages_api: MessagesApi, ask: Ask) -> None:
    messages_api.script(replies.drip(pause_seconds=0.5, pings=4, pieces=4))
    watcher = Watcher()
    answer = ask(replace(QUICK, idle_seconds=0.4)).claude.summarize(plain(), watcher)
    assert answer.stop_reason == "end_turn"
    assert watcher.signs[0] == 0
    assert watcher.signs == sorted(watcher.signs)
    assert watcher.signs[-1] > 0


@pytest.mark.parametrize("reply", [replies.STALLED, replies.SILENT])
def test_silence_ends_at_the_idle_limit_and_the_connection_is_closed(
    messages_api: MessagesApi, ask: Ask, reply: Reply
) -> None:
    messages_api.script(reply)
    started = time.monotonic()
    failure = ask(replace(QUICK, idle_seconds=0.4)).fail(plain())
    assert (failure.reason, getattr(failure, "is_retryable", None)) == ("timeout", True)
    assert time.monotonic() - started < 3
    wait_until(lambda: messages_api.requests[0].was_left)


def test_deadline_ends_even_a_stream_that_goes_on(messages_api: MessagesApi, ask: Ask) -> None:
    messages_api.script(replies.drip(pause_seconds=0.2, pieces=40))
    started = time.monotonic()
    failure = ask(replace(QUICK, try_seconds=0.5)).fail(plain())
    assert (failure.reason, getattr(failure, "is_retryable", None)) == ("timeout", False)
    assert time.monotonic() - started < 3


@pytest.mark.parametrize("reply", [replies.STALLED, replies.SILENT, replies.drip(pause_seconds=0.1, pieces=100)])
def test_cancel_works_at_once_whatever_the_stream_does(messages_api: MessagesApi, ask: Ask, reply: Reply) -> None:
    messages_api.script(reply)
    asked, watcher = ask(Limits()), Watcher(cancel_after=0.4)
    failure = asked.fail(plain(), watcher)
    assert isinstance(failure, CompactionCancelled)
    assert time.monotonic() - watcher.made_at < 2.4  # 0.3 s after the cancel on an idle machine
    assert asked.attempts[0].failure_code == "cancelled"
    wait_until(lambda: messages_api.requests[0].was_left)


def test_second_try_waits_as_long_as_the_api_asks(messages_api: MessagesApi, ask: Ask) -> None:
    messages_api.script(replies.refuse(429, "rate_limit_error", "slow down", retry_after="0.6"))
    asked = ask()
    asked.fail(plain())
    started = time.monotonic()
    asked.claude.summarize(plain(), SilentMonitor())
    assert 0.4 < time.monotonic() - started < 5
    assert [attempt.failure_code for attempt in asked.attempts] == ["rate_limited", ""]


def test_wait_that_is_longer_than_a_run_may_take_is_not_begun(messages_api: MessagesApi, ask: Ask) -> None:
    messages_api.script(replies.refuse(429, "rate_limit_error", "slow down", retry_after="4294967"))
    failure = ask().fail(plain())
    assert isinstance(failure, SummarizerUnavailable)
    assert (failure.reason, failure.is_retryable) == ("rate_limited", False)
    assert "asks to wait 4,294,967 seconds" in str(failure)


def test_cancel_works_while_waiting_for_the_second_try(messages_api: MessagesApi, ask: Ask) -> None:
    messages_api.script(replies.refuse(529, "overloaded_error", "busy", retry_after="10"))
    asked = ask()
    asked.fail(plain())
    started = time.monotonic()
    failure = asked.fail(plain(), Watcher(cancel_after=0.2))
    assert isinstance(failure, CompactionCancelled)
    assert time.monotonic() - started < 3
    assert len(messages_api.requests) == 1


def test_header_can_forbid_a_second_try(messages_api: MessagesApi, ask: Ask) -> None:
    messages_api.script(replace(replies.OVERLOADED, headers={"x-should-retry": "false"}))
    assert getattr(ask().fail(plain()), "is_retryable", None) is False


def test_wait_is_read_in_every_way_it_may_be_said() -> None:
    now = datetime(2026, 11, 16, tzinfo=UTC)
    later = format_datetime(now + timedelta(seconds=30), usegmt=True)
    cases: list[tuple[Mapping[str, str], float | None]] = [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": later}, 30.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
    ]
    assert [read_wait_seconds(headers, now=now) for headers, _ in cases] == [wait for _, wait in cases]


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 3
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


# --- counting --------------------------------------------------------------------------------------------------------


def test_tokens_are_counted_without_what_only_shapes_the_answer(messages_api: MessagesApi, ask: Ask) -> None:
    asked = ask()
    body = {**plain().body, "metadata": {"user_id": "u"}, "stop_sequences": ["x"], "model": "claude-opus-5-5[1m]"}
    counted = asked.claude.count_tokens(body)
    assert counted > 100
    [sent] = messages_api.requests
    assert sent.path == "/v1/messages/count_tokens"
    assert set(sent.body) == {"model", "messages"}
    assert sent.body["model"] == "claude-opus-5-5"
    assert [(attempt.path, attempt.failure_code) for attempt in asked.attempts] == [("count", "")]


def test_failed_count_is_a_named_failure_too(messages_api: MessagesApi, ask: Ask) -> None:
    messages_api.script(replies.RATE_LIMITED)
    asked = ask()
    with pytest.raises(SummarizerUnavailable, match="used up"):
        asked.claude.count_tokens(plain().body)
    assert asked.attempts[0].failure_code == "rate_limited"
