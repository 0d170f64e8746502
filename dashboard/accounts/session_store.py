"""Browser sessions in the database, as Django keeps them, found by a query that is put together once."""

from typing import cast

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.utils import timezone

from dashboard.kept_query import KeptQuery, Open, column_names, make_object

_SESSION = KeptQuery(lambda: Session.objects.filter(session_key=Open("key")).values_list(*column_names(Session)))


class SessionStore(db.SessionStore):
    def _get_session_from_db(self) -> Session | None:
        """As Django's own: a session that is not there or over is forgotten, and with it its key."""
        key = cast("str", self.session_key)
        rows = _SESSION.read(key=key) if "\0" not in key else []  # PostgreSQL refuses to compare a text with a NUL
        session = make_object(Session, rows[0]) if rows else None
        if session is None or session.expire_date <= timezone.now():
            self._session_key = None
            return None
        return session
