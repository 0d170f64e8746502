"""Bodies of JSON: plain or gzip, within the limit of their address, known to be harmless before they are read."""

from typing import Any, cast

from django.http import HttpRequest
from ninja.errors import HttpError
from ninja.parser import Parser

from compaction.transcripts.reader import load_json
from dashboard.api.schemas import Problem
from dashboard.front_door import find_body_limit
from dashboard.ingest.bodies import BodyRefused, unpack_body
from dashboard.ingest.hostile_json import holds_too_much

MOST_VALUES = 250_000  # ten thousand messages with all that is in them
# What every address that takes a conversation may answer to its body.
BODY_PROBLEMS: dict[int, Any] = {400: Problem, 413: Problem, 415: Problem}


class BodyParser(Parser):
    """Bodies are read as lines of transcripts are: halves of characters forgiven, NaN and endless numbers refused."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        encoding = request.headers.get("Content-Encoding", "")
        data = unpack_body(request.body, encoding, limit_bytes=find_body_limit(request.path))
        if holds_too_much(data, most_values=MOST_VALUES):
            raise BodyRefused(413, f"The body has more than {MOST_VALUES:,} values, or an infinite number.")
        return cast(dict[str, Any], load_json(data))


def find_refusal(error: HttpError) -> BodyRefused | None:
    """The framework tells whatever a parser raises as 400, and keeps what it was as the cause."""
    return error.__cause__ if isinstance(error.__cause__, BodyRefused) else None
