"""How a log line looks: one line a record, ids and numbers, no content, every token masked."""

import json
import logging
import re
import traceback
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime

from django.db import OperationalError

from dashboard.accounts import tokens

TOKEN = re.compile(rf"({'|'.join(tokens.KINDS)}|sk-ant-)[A-Za-z0-9_%-]{{8,}}")
# Whatever stands where the proxy expects a key, or nearly there: people put other secrets there by mistake. A path as
# it was written has no end of a word inside it, and is read as far as its next slash.
_GAP = r"(?:[/\\]|%2f|%5c|%20)++"  # and nothing of it is given back: a long path must not take long
PLACE_OF_KEY = re.compile(
    rf"(/proxy{_GAP}(?:(?:u|%[57]5){_GAP}(?:[^/\\%\s\"'?]++{_GAP})?)?(?:k|%[46]b){_GAP})[^/\s\"'?]+", re.IGNORECASE
)
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
OWN_PACKAGES = ("dashboard.", "compaction.")
LIBRARY_FOLDER = re.compile(r"^.*/(?:site-packages|python3\.\d+)/")
FRAMES_SHOWN = 20
CHAIN_SHOWN = 5

LogValue = str | int | float | None
current_request_id: ContextVar[str] = ContextVar("current_request_id", default="")

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_PLAIN_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def mask_tokens(text: str) -> str:
    """Mask our own tokens and keys of the API: only the kind of each is shown."""
    masked = TOKEN.sub(r"\1***", text)
    return PLACE_OF_KEY.sub(r"\1***", masked) if "/proxy" in masked.lower() else masked


def describe_exception(error: BaseException) -> str:
    """The class, and the message only where it is known to hold no row content.

    PostgreSQL's IntegrityError, a KeyError or a parser's ValueError quote what they choked on.
    """
    name = type(error).__qualname__
    if type(error).__module__.startswith(OWN_PACKAGES) or isinstance(error, OperationalError):
        return f"{name}: {error}"
    if isinstance(error, OSError) and error.strerror:
        return f"{name}: {error.strerror}"
    return name


def _chain(error: BaseException) -> Iterator[tuple[str, BaseException]]:
    seen: set[int] = set()
    link, current = "", error
    while id(current) not in seen and len(seen) < CHAIN_SHOWN:
        seen.add(id(current))
        yield link, current
        if isinstance(current, BaseExceptionGroup):
            link, current = " | first of the group ", current.exceptions[0]
        elif current.__cause__ is not None:
            link, current = " | caused by ", current.__cause__
        elif current.__context__ is not None and not current.__suppress_context__:
            link, current = " | while handling ", current.__context__


def format_traceback(error: BaseException) -> str:
    """Class names and frames (file:line function, the innermost last), without source lines or values."""
    parts = []
    for link, current in _chain(error):
        frames = traceback.extract_tb(current.__traceback__)[-FRAMES_SHOWN:]
        where = " > ".join(f"{LIBRARY_FOLDER.sub('', frame.filename)}:{frame.lineno} {frame.name}" for frame in frames)
        parts.append(f"{link}{describe_exception(current)}" + (f" [{where}]" if where else ""))
    return "".join(parts)


def _message(record: logging.LogRecord) -> str:
    if isinstance(record.msg, BaseException):
        return describe_exception(record.msg)
    args = record.args
    if isinstance(args, tuple):
        args = tuple(describe_exception(value) if isinstance(value, BaseException) else value for value in args)
    text = str(record.msg)
    text = text % args if args else text
    # With an exception, asyncio writes the task's repr on further lines, and that quotes the exception's message.
    return text.split("\n", 1)[0] if record.exc_info else text


class LogFormatter(logging.Formatter):
    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self.as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields: dict[str, LogValue] = {
            "time": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        if request_id := current_request_id.get():
            fields["id"] = request_id
        extra = {
            name: value
            for name, value in vars(record).items()
            # Only ids and numbers: Django hangs whole requests on its records, whose repr holds the query string.
            if name not in _PLAIN_RECORD and name not in fields and isinstance(value, str | int | float | None)
        }
        if record.exc_info and record.exc_info[1] is not None:
            extra["exception"] = format_traceback(record.exc_info[1])
        return mask_tokens(self._as_object(fields | extra) if self.as_json else self._as_text(fields, extra))

    @staticmethod
    def _as_object(fields: dict[str, LogValue]) -> str:
        return _ENCODER.encode(fields)

    @staticmethod
    def _as_text(fields: dict[str, LogValue], extra: dict[str, LogValue]) -> str:
        start = f"{fields.pop('time')} {fields.pop('level'):<7} {fields.pop('logger')} {fields.pop('message')}"
        line = " ".join([start, *(f"{name}={value}" for name, value in (fields | extra).items())])
        return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), line)
