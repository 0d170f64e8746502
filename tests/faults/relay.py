"""TCP relay on 127.0.0.1 between Plimsoll and a server, which can fall silent without closing any connection."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

CHUNK_BYTES = 65536


class Relay:
    """While silent it accepts connections and bytes, as a frozen host's kernel would, and forwards nothing."""

    def __init__(self, target_port: int) -> None:
        self.port = 0
        self._target_port = target_port
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="relay")
        self._thread.start()
        assert self._started.wait(10)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)

    def silence(self) -> None:
        self._loop.call_soon_threadsafe(self._forwarding.clear)

    def resume(self) -> None:
        self._loop.call_soon_threadsafe(self._forwarding.set)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._forwarding, self._stopping = asyncio.Event(), asyncio.Event()
        self._forwarding.set()
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stopping.wait()
        server.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(OSError, asyncio.CancelledError):
            await self._forwarding.wait()
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
            with closing(far_writer):
                await asyncio.gather(self._forward(reader, far_writer), self._forward(far_reader, writer))

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK_BYTES):
            await self._forwarding.wait()
            writer.write(data)
            await writer.drain()
        writer.close()


@contextmanager
def relaying(target_port: int) -> Iterator[Relay]:
    relay = Relay(target_port)
    try:
        yield relay
    finally:
        relay.stop()
