"""Whether a request went over a connection that had carried another one before. No Django here.

aiohttp's own traces would tell it too, at a tenth of all the time that a call takes.
"""

from contextvars import ContextVar
from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

# Of the request that the task at hand makes: set before it, read after it.
is_reused: ContextVar[bool] = ContextVar("is_reused", default=False)

_carried_one: "WeakSet[ResponseHandler]" = WeakSet()


class NotedRequest(aiohttp.ClientRequest):
    """For the session that requests are made with."""

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        if conn.protocol is not None:
            is_reused.set(conn.protocol in _carried_one)
            _carried_one.add(conn.protocol)
        return await super().send(conn)
