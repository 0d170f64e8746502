"""A session to take away: its transcript as it is stored, or its numbers as JSON. Both are sent while they are read.

Read piece by piece, each with a query of its own: a slow client holds neither memory nor a database cursor.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.db import connections
from django.db.models import Model
from django.http import StreamingHttpResponse

from compaction.timeline.observations import REPORT
from dashboard.ingest.segments import read_segment_lines
from dashboard.models import (
    AgentSession,
    ApiCall,
    CacheBreak,
    CompactionRun,
    EntrySegment,
    ObservedCompaction,
    SessionHour,
    Thread,
    UnansweredCall,
)
from dashboard.plain_json import write_value
from dashboard.retention.plan import CONTENT

ROWS_AT_ONCE = 500
_TABLES: dict[str, type[Model]] = {
    "threads": Thread,
    "calls": ApiCall,
    "unanswered_calls": UnansweredCall,
    "breaks": CacheBreak,
    "compactions": ObservedCompaction,
    "hours": SessionHour,
    "runs": CompactionRun,
}
_INNER = ("id", "team", "session", "search_text", "job", "again_of", "started_by", "owner")

Pieces = Iterator[bytes]


def download_transcript(session: AgentSession) -> StreamingHttpResponse:
    """Every line whose content is stored, byte for byte as it was stored, in the order in which they came."""
    return _answer(lambda: _list_lines(session.pk), "application/x-ndjson", f"{_name_file(session)}.jsonl")


def download_numbers(session: AgentSession) -> StreamingHttpResponse:
    """Everything but words: what a team has that stores no content."""
    return _answer(lambda: _list_numbers(session), "application/json", f"{_name_file(session)}.numbers.json")


def _list_lines(session_pk: int) -> Pieces:
    behind = 0
    while rows := list(
        EntrySegment.objects.filter(session=session_pk, number__gt=behind)
        .order_by("number")
        .values_list("number", "facts", "content")[:1]
    ):
        behind, facts, content = rows[0]
        lines = read_segment_lines(facts, content)
        # What telemetry told beside the transcript is no line of it.
        yield b"".join(line.content + b"\n" for line in lines if line.content and line.fact.type != REPORT)


def _list_numbers(session: AgentSession) -> Pieces:
    own = {name: getattr(session, name) for name in _list_columns(AgentSession)}
    yield b'{"session":' + _spell({"team": session.team.slug, **own})
    for name, model in _TABLES.items():
        yield f',"{name}":['.encode()
        is_first = True
        for page in _list_pages(model, session.pk):
            yield (b"" if is_first else b",") + b",".join(_spell(row) for row in page)
            is_first = False
        yield b"]"
    yield b"}\n"


def _list_pages(model: type[Model], session_pk: int) -> Iterator[list[dict[str, Any]]]:
    columns, last_pk = _list_columns(model), 0
    rows = model._default_manager.filter(session=session_pk).order_by("pk")  # noqa: SLF001 (Django's name for it)
    while page := list(rows.filter(pk__gt=last_pk).values("pk", *columns)[:ROWS_AT_ONCE]):
        last_pk = page[-1]["pk"]
        yield [{name: row[name] for name in columns} for row in page]


def _list_columns(model: type[Model]) -> list[str]:
    left_out = {*_INNER, *CONTENT.get(model, ())}
    return [field.name for field in model._meta.concrete_fields if field.name not in left_out]


def _spell(values: dict[str, Any]) -> bytes:
    return orjson.dumps(values, default=write_value, option=orjson.OPT_PASSTHROUGH_DATETIME)


def _name_file(session: AgentSession) -> str:
    """Ids come from outside: only what is harmless in a header and on a disk stays."""
    kept = "".join(
        sign if sign.isascii() and (sign.isalnum() or sign in "-_.") else "_" for sign in session.external_id
    )
    return kept.lstrip(".")[:120] or "session"


def _answer(pieces: Callable[[], Pieces], content_type: str, name: str) -> StreamingHttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return StreamingHttpResponse(_stream(pieces()), content_type=content_type, headers=headers)


async def _stream(pieces: Pieces) -> AsyncIterator[bytes]:
    """The connection to the database is given back after each piece: a slow download keeps none."""

    def take() -> bytes | None:
        try:
            return next(pieces, None)
        finally:
            connections.close_all()

    while (piece := await sync_to_async(take)()) is not None:
        yield piece
