"""How an answer is written: its head goes out with the first bytes of its body, where these come at once.

uvicorn writes the two one by one. The other end is woken for a head that it can do little with, and again for the
body: a twentieth of the time of a call through the proxy.
"""

import asyncio


class AnswerWriter(asyncio.Transport):
    """Of one answer, with what uvicorn asks of a transport for it. A head waits for no later turn of the loop."""

    __slots__ = ("_head", "_is_begun", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport, self._loop = transport, loop
        self._head = b""
        self._is_begun = False

    def write(self, data: "bytes | bytearray | memoryview[int]") -> None:
        if not self._is_begun:
            self._is_begun, self._head = True, bytes(data)
            self._loop.call_soon(self._let_go)
        elif self._head:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        else:
            self._transport.write(data)

    def close(self) -> None:
        self._let_go()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def _let_go(self) -> None:
        head, self._head = self._head, b""
        if head and not self._transport.is_closing():
            self._transport.write(head)
