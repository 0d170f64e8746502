"""What the endpoints of sessions, breaks and compactions share: finding a session, reading the place of a page."""

from datetime import date
from typing import Annotated

from django.shortcuts import get_object_or_404
from ninja import Field
from ninja.errors import HttpError
from pydantic import StringConstraints

from dashboard import access
from dashboard.access import Act
from dashboard.api.request import ApiRequest
from dashboard.models import AgentSession
from dashboard.pages.keyset import Place, read_place
from dashboard.pages.periods import FIRST_DATE, LAST_DATE

MOST_ROWS = 200
# A NUL would reach PostgreSQL, which takes none.
Name = Annotated[str, StringConstraints(max_length=80, pattern=r"^[\w-]*$")]
Day = Annotated[date, Field(ge=FIRST_DATE, le=LAST_DATE)]


def find_session(request: ApiRequest, session_id: int) -> AgentSession:
    access.require_anywhere(request.auth, Act.SEE)
    return get_object_or_404(access.sessions(request.auth).select_related("team"), pk=session_id)


def read_before(text: str) -> Place | None:
    """A place that is none is refused: it would silently start again at the first page."""
    if not text:
        return None
    place = read_place(text)
    if place is None:
        raise HttpError(422, "`before` is not a valid `next` value of a page.")
    return place
