"""Whom the benches of the proxy compare: nobody between, a bare Starlette + aiohttp relay, Plimsoll and LiteLLM, each
in a process of its own. What is not ours is installed into an environment beside them. Linux alone: it reads /proc."""

import json
import os
import secrets
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("json", "sse")
CONCURRENCIES = (1, 16, 64)
REQUEST_BYTES = 40_000
CALLS_OF_A_SESSION = 50
TICKS = os.sysconf("SC_CLK_TCK")

# The floor: it passes bytes, and does nothing else.
BARE = """
import sys, aiohttp, uvicorn
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route
session = None
async def relay(request):
    global session
    if session is None:
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), auto_decompress=False)
    headers = {k: v for k, v in request.headers.items() if k not in ("host", "connection", "transfer-encoding")}
    upstream = await session.post(sys.argv[2] + request.url.path, data=await request.body(), headers=headers)
    async def chunks():
        async for chunk in upstream.content.iter_any():
            yield chunk
    passed = {k: v for k, v in upstream.headers.items() if k.lower() not in ("connection", "transfer-encoding")}
    return StreamingResponse(chunks(), upstream.status, passed)
app = Starlette(routes=[Route("/{path:path}", relay, methods=["POST", "GET", "HEAD"])])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), loop="uvloop", http="httptools", log_level="warning",
            access_log=False)
"""


@dataclass
class Contender:
    """`pids` are the processes whose work is counted, by what they are; `database` is where calls are written down."""

    name: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    pids: dict[str, int] = field(default_factory=dict)
    database: Path | None = None

    def count_recorded(self) -> int:
        if self.database is None:
            return 0
        with closing(sqlite3.connect(self.database, timeout=30)) as connection:
            return int(connection.execute("SELECT count(*) FROM dashboard_apicall").fetchone()[0])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_body(kind: str, number: int) -> bytes:
    words = "The harbour is twelve metres deep. " * (REQUEST_BYTES // 35)
    messages = [{"role": "user", "content": f"{number} {words}"}]
    return json.dumps(
        {"model": "claude-opus-5-5", "max_tokens": 500, "stream": kind == "sse", "messages": messages}
    ).encode()


def read_cpu(pid: int) -> float:
    told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(told[11]) + int(told[12])) / TICKS


def read_memory_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def wait_until_idle(pid: int) -> None:
    give_up_at = time.monotonic() + 60
    before, now = -1.0, read_cpu(pid)
    while now - before > 0.02 and time.monotonic() < give_up_at:
        time.sleep(0.7)
        before, now = now, read_cpu(pid)


@contextmanager
def started(command: list[str], port: int, log: Path, **environment: str) -> "Iterator[subprocess.Popen[bytes]]":
    dropped = ("PYTHONDONTWRITEBYTECODE", "DATABASE_URL")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=kept | environment, stdout=output, stderr=output)
    try:
        give_up_at = time.monotonic() + 240
        while not is_listening(port):
            if process.poll() is not None or time.monotonic() > give_up_at:
                raise SystemExit(f"did not start: {' '.join(command)}\n{log.read_text()[-2000:]}")
            time.sleep(0.2)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def start_plimsoll(stack: ExitStack, scratch: Path, upstream: str) -> Contender:
    port = free_port()
    environment = {
        "PLIMSOLL_DATA": str(scratch / "data"),
        "PLIMSOLL_PORT": str(port),
        "PLIMSOLL_FOLLOW": "off",
        "PLIMSOLL_UPSTREAM": upstream,
        "PLIMSOLL_PROXY_CALLS_PER_MINUTE": "0",
        "PYTHONPYCACHEPREFIX": str(scratch / "bytecode"),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-P", "-m", "dashboard.cli", "up"]
    process = stack.enter_context(started(command, port, scratch / "plimsoll.log", **environment))
    pids: dict[str, int] = {}
    give_up_at = time.monotonic() + 60
    while not {"web", "recorder"} <= pids.keys() and time.monotonic() < give_up_at:
        time.sleep(0.5)
        for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            pids |= {name: int(pid) for name in ("web", "recorder") if name in words}
    database = scratch / "data" / "plimsoll.sqlite3"
    return Contender("plimsoll", f"http://127.0.0.1:{port}/proxy", pids=pids, database=database)


def install(folder: Path, *packages: str) -> Path | None:
    """The interpreter of an environment that holds these; None, with a sentence, where that cannot be had."""
    python = folder / "bin" / "python"
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    commands = [uv, "venv", "-q", "-p", sys.executable, str(folder)], [uv, "pip", "install", "-q", "-p", str(python)]
    try:
        if not python.exists():
            subprocess.run(commands[0], check=True, capture_output=True, timeout=600)
        subprocess.run([*commands[1], *packages], check=True, capture_output=True, timeout=600)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{packages[0]} is left out: it does not install here ({type(error).__name__}).")
        return None
    return python


def start_bare(stack: ExitStack, scratch: Path, upstream: str, folder: Path) -> Contender | None:
    """With the same libraries underneath as Plimsoll."""
    shared = [f"{name}=={version(name)}" for name in ("aiohttp", "uvicorn", "uvloop", "httptools")]
    python = install(folder, "starlette", *shared)
    if python is None:
        return None
    port = free_port()
    bare = stack.enter_context(started([str(python), "-c", BARE, str(port), upstream], port, scratch / "bare.log"))
    return Contender("bare relay", f"http://127.0.0.1:{port}", pids={"relay": bare.pid})


def start_litellm(stack: ExitStack, scratch: Path, upstream: str, folder: Path) -> Contender | None:
    """Its own environment, with what it needs to serve; None, with a sentence, where that cannot be had."""
    python = install(folder, "litellm[proxy]", "opentelemetry-sdk")
    if python is None:
        return None
    subprocess.run([str(python), "-m", "compileall", "-q", "-j", "0", str(folder / "lib")], check=False)
    port = free_port()
    config = scratch / "litellm.yaml"
    config.write_text("model_list: []\ngeneral_settings: {}\n")
    command = [str(folder / "bin" / "litellm"), "--config", str(config), "--port", str(port), "--host", "127.0.0.1"]
    key = f"sk-{secrets.token_hex(32)}"  # it does not start without one
    environment = {
        "ANTHROPIC_API_KEY": "sk-bench",
        "ANTHROPIC_API_BASE": upstream,
        "LITELLM_LOG": "ERROR",
        "LITELLM_MASTER_KEY": key,
    }
    try:
        process = stack.enter_context(started(command, port, scratch / "litellm.log", **environment))
    except SystemExit as error:
        print(f"LiteLLM is left out: {error}")
        return None
    return Contender(
        "litellm", f"http://127.0.0.1:{port}/anthropic", headers={"x-api-key": key}, pids={"proxy": process.pid}
    )


def start_contenders(
    stack: ExitStack, scratch: Path, upstream: str, *, environments: Path, with_litellm: bool
) -> list[Contender]:
    """`environments` is where what they need is installed, once for several starts."""
    litellm = Path(os.environ.get("PLIMSOLL_BENCH_LITELLM", environments / "litellm"))
    contenders = [
        Contender("direct", upstream),
        start_bare(stack, scratch, upstream, environments / "bare"),
        start_plimsoll(stack, scratch, upstream),
        start_litellm(stack, scratch, upstream, litellm) if with_litellm else None,
    ]
    return [contender for contender in contenders if contender is not None]
