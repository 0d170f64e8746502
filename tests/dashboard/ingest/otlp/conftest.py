"""The real ASGI application on a port, for clients that speak HTTP themselves."""

import logging
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

from dashboard.asgi import build_application


@pytest.fixture
def server_url(transactional_db: None) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        logging.getLogger("dashboard.front_door").setLevel(logging.WARNING)
        server = uvicorn.Server(uvicorn.Config(build_application(), log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="server of a test")
        thread.start()
        try:
            give_up_at = time.monotonic() + 15
            while not server.started:
                assert thread.is_alive(), "the server ended while starting"
                assert time.monotonic() < give_up_at, "the server did not start"
                time.sleep(0.02)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(15)
