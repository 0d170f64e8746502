"""PostgreSQL connections that give up on a server that accepts statements and never answers.

The server enforces `statement_timeout` itself, so a frozen server does not; TCP timeouts do not fire either while its
kernel acknowledges what is sent. Only the client can decide that it has waited long enough.
"""

from typing import TYPE_CHECKING, Any, TypeVar, cast

import psycopg
from django.conf import settings
from django.db import connection
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

if TYPE_CHECKING:
    from django.db.backends.postgresql.base import DatabaseWrapper

T = TypeVar("T")

# An answering server cancels a statement by itself first, which keeps the connection usable.
CANCEL_MARGIN_SECONDS = 0.5


class BoundedConnection(psycopg.Connection[Any]):
    """Connection whose statements end within `settings.DATABASE_STATEMENT_SECONDS`, answered or not."""

    @classmethod
    def connect(cls, *args: Any, **kwargs: Any) -> "BoundedConnection":
        # By a statement: connection poolers between here and the server reject it as a startup parameter.
        opened = super().connect(*args, **kwargs)
        opened.execute(f"SET statement_timeout = {settings.DATABASE_STATEMENT_SECONDS * 1000}".encode())
        return opened

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Raise OperationalError and close the connection if the server does not answer in time."""
        limit = settings.DATABASE_STATEMENT_SECONDS + CANCEL_MARGIN_SECONDS
        try:
            return super().wait(gen, interval, limit if timeout is None else timeout)
        except psycopg.OperationalError:
            if timeout is not None or self.pgconn.transaction_status != TransactionStatus.ACTIVE:
                raise
            # The rest of the answer may still arrive, so nothing else can be sent over this connection.
            self.close()
            # Idle connections to a server that became unreachable would each cost one more request the same time.
            cast("DatabaseWrapper", connection).pool.drain()
            raise psycopg.OperationalError(f"PostgreSQL did not answer within {limit:g} s") from None


def bound_statements() -> None:
    """Limit how long this process waits for PostgreSQL. For web processes: imports and jobs may take their time.

    Call it before the first connection is opened.
    """
    pool = connection.settings_dict["OPTIONS"]["pool"]
    seconds = settings.DATABASE_STATEMENT_SECONDS
    pool.update(connection_class=BoundedConnection, timeout=seconds, reconnect_timeout=seconds)
