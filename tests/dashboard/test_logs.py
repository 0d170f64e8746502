"""Log lines: one a record, no content, no secrets."""

import asyncio
import json
import logging
import sys
import time
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError
from django.test import RequestFactory

from dashboard.accounts import tokens
from dashboard.environment import BadSetting
from dashboard.logs import LogFormatter, current_request_id, mask_tokens

TOKEN = "plk_" + "aB3_-" * 8


def make_record(message: object, *args: Any, error: BaseException | None = None, **extra: Any) -> logging.LogRecord:
    exc_info = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord("dashboard.thing", logging.INFO, __file__, 1, message, args, exc_info)
    vars(record).update(extra)
    return record


def as_object(record: logging.LogRecord) -> dict[str, Any]:
    line = LogFormatter(as_json=True).format(record)
    assert "\n" not in line
    told: dict[str, Any] = json.loads(line)
    return told


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException:  # noqa: BLE001 (the point is to catch whatever the test raises)
        caught = sys.exc_info()[1]
        assert caught is not None
        return caught


def test_json_line_carries_ids_and_numbers() -> None:
    told = as_object(make_record("run %s ended", 7, run=7, seconds=1.5, note=None))
    assert told["message"] == "run 7 ended"
    assert (told["run"], told["seconds"], told["note"]) == (7, 1.5, None)
    assert (told["level"], told["logger"]) == ("info", "dashboard.thing")
    assert told["time"].endswith("Z")


def test_readable_line_has_keys_and_values() -> None:
    line = LogFormatter(as_json=False).format(make_record("started", pid=12))
    assert line.endswith("info    dashboard.thing started pid=12")


def test_line_breaks_and_control_characters_cannot_forge_a_line() -> None:
    line = LogFormatter(as_json=False).format(make_record("a\nb\r\x1b[31m", path="/x\ny"))
    assert "\\nb" in line
    assert not any(ord(character) < 32 for character in line)


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("kind", tokens.KINDS)
def test_tokens_are_masked_wherever_they_stand(kind: str, as_json: bool) -> None:  # noqa: FBT001
    token = kind + "x" * 43
    record = make_record("at %s", f"/sign-in/{token}/", path=f"/{token}", error=raised(BadSetting(token)))
    line = LogFormatter(as_json=as_json).format(record)
    assert token not in line
    assert line.count(f"{kind}***") == 3


def test_objects_in_extra_are_left_out() -> None:
    request = RequestFactory().get("/x?secret=1")
    assert "secret" not in json.dumps(as_object(make_record("Not Found: /x", request=request, status_code=404)))


def test_exception_shows_class_and_frames_but_not_the_message() -> None:
    told = as_object(make_record("failed", error=raised(IntegrityError("Key (email)=(alice@example.org) exists"))))
    assert told["exception"].startswith("IntegrityError [")
    assert "test_logs.py:" in told["exception"]
    assert "raised" in told["exception"]
    assert "alice" not in json.dumps(told)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (BadSetting("PLIMSOLL_PORT: no"), "BadSetting: PLIMSOLL_PORT: no"),
        (OSError(28, "No space left on device", "/home/alice/secret"), "OSError: No space left on device"),
        (OperationalError("database is locked"), "OperationalError: database is locked"),
        (ValueError("content"), "ValueError ["),
    ],
)
def test_messages_known_to_be_harmless_are_shown(error: Exception, shown: str) -> None:
    told = as_object(make_record("failed", error=raised(error)))["exception"]
    assert told.startswith(shown)
    assert "alice" not in told


def test_chain_of_causes_is_told() -> None:
    def fail() -> None:
        try:
            raise KeyError("content")
        except KeyError as error:
            raise RuntimeError("content") from error

    with pytest.raises(RuntimeError) as caught:
        fail()
    told = as_object(make_record("failed", error=caught.value))["exception"]
    assert "RuntimeError [" in told
    assert " | caused by KeyError [" in told
    assert "content" not in told


def test_exception_groups_name_their_first() -> None:
    told = as_object(make_record("failed", error=ExceptionGroup("content", [KeyError("content")])))["exception"]
    assert told == "ExceptionGroup | first of the group KeyError"


def test_exceptions_given_as_arguments_lose_their_message() -> None:
    assert as_object(make_record("failed: %s", ValueError("content")))["message"] == "failed: ValueError"
    assert as_object(make_record(ValueError("content")))["message"] == "ValueError"


def test_forgotten_task_does_not_quote_its_exception(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ValueError("the content")

    async def forget() -> None:
        task = asyncio.create_task(fail())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        del task

    with caplog.at_level(logging.ERROR, logger="asyncio"):
        asyncio.run(forget())
    (record,) = caplog.records
    assert "the content" in record.getMessage()
    assert "the content" not in LogFormatter(as_json=True).format(record)


def test_lines_within_a_request_carry_its_id() -> None:
    outside = current_request_id.set("0123")
    try:
        assert as_object(make_record("x"))["id"] == "0123"
        assert "id=0123" in LogFormatter(as_json=False).format(make_record("x"))
    finally:
        current_request_id.reset(outside)
    assert "id" not in as_object(make_record("x"))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/proxy/k/secret/v1", "/proxy/k/***/v1"),
        ("/proxy/u/name/k/secret", "/proxy/u/name/k/***"),
        ("/PROXY//K/secret/v1", "/PROXY//K/***/v1"),
        ("/proxy/%6B%2Fa%2Fsecret%20b/v1", "/proxy/%6B%2F***/v1"),
        ("/proxy/v1/x?key=sk-ant-api03-a%2Fsecret", "/proxy/v1/x?key=sk-ant-***"),
        ("/proxy/v1/kept", "/proxy/v1/kept"),
        ("/proxy/keys/kept", "/proxy/keys/kept"),
    ],
)
def test_whatever_stands_in_the_place_of_a_key_is_masked(path: str, shown: str) -> None:
    assert mask_tokens(path) == shown
    assert as_object(make_record("refused", path=path, status=404))["path"] == shown


def test_masking_takes_no_longer_for_a_path_made_to_hurt() -> None:
    began = time.process_time()
    for part in ("%20", "/u/", "u%20", "/proxy/u/", "\\", "/proxy//"):
        mask_tokens("/proxy/u/" + part * 100_000)
    assert time.process_time() - began < 5


def test_short_words_that_look_like_a_token_stay() -> None:
    assert mask_tokens("plk_short") == "plk_short"
    assert mask_tokens(TOKEN) == "plk_***"
