"""A list as a file to keep: the address of its page with `export=csv` or `export=json`, filters and rights as there."""

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone

from dashboard.exports.formats import CONTENT_TYPES, WRITERS, Format
from dashboard.exports.tables import ExportTable


def read_format(request: HttpRequest) -> Format | None:
    """None where the page itself is asked for."""
    text = request.GET.get("export", "")
    return Format(text) if text in set(Format) else None


def read_part(request: HttpRequest) -> str:
    """Which list, on a page that has several; empty for the first."""
    return request.GET.get("part", "")


def send_export(request: HttpRequest, table: ExportTable, wanted: Format) -> StreamingHttpResponse:
    """Sent while it is read: neither the list nor the file is ever held as a whole."""
    pieces = WRITERS[wanted](table)
    content = _read_in_thread(pieces) if isinstance(request, ASGIRequest) else pieces
    response = StreamingHttpResponse(content, content_type=CONTENT_TYPES[wanted])
    name = f"plimsoll-{table.name}-{timezone.localdate():%Y-%m-%d}.{wanted}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "private, no-store"
    return response


async def _read_in_thread(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The connection to the database is given back after each piece: a slow download keeps none."""

    def take() -> bytes | None:
        try:
            return next(pieces, None)
        finally:
            connections.close_all()

    while (piece := await sync_to_async(take)()) is not None:
        yield piece
