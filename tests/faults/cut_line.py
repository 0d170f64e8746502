"""The line between a laptop and its server: bytes are passed on both ways until somebody cuts it."""

import contextlib
import socket
import struct
import threading

_PIECE_BYTES = 65_536
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER for no time: the other end sees a reset, as from a line that broke


class CutLine:
    """Listens on `port`, whole at first. While it is cut, nobody gets through, nothing under way arrives."""

    def __init__(self, port: int, *, server_port: int) -> None:
        self.port, self._server_port = port, server_port
        self._ends: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self.mend()

    def mend(self) -> None:
        self._listener = listener = socket.create_server(("127.0.0.1", self.port), reuse_port=False)
        threading.Thread(target=self._accept, args=(listener,), name="line", daemon=True).start()

    def cut(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            listener.close()
        with self._lock:
            ends = set(self._ends)
        for end in ends:
            self._break(end)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._server_port), timeout=10)
            except OSError:
                self._break(near)
                continue
            far.settimeout(None)
            with self._lock:
                self._ends |= {near, far}
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(source, sink), name="line", daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while piece := source.recv(_PIECE_BYTES):
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            self._break(source)
            self._break(sink)

    def _break(self, end: socket.socket) -> None:
        with self._lock:
            self._ends.discard(end)
        with contextlib.suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            end.shutdown(socket.SHUT_RDWR)
        end.close()
