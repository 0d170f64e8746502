"""What the proxy costs: direct, a bare Starlette + aiohttp relay, Plimsoll and LiteLLM in one run.

A loopback upstream answers a 40 KB request with JSON or with an event stream; each contender is asked at concurrency
1, 16 and 64, in interleaved rounds, and medians are shown. LiteLLM is installed into an environment of its own and
compiled first; where that fails the bench says so and goes on. Linux alone: it reads /proc. `python bench/proxy.py`.
"""

import argparse
import asyncio
import json
import os
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

ROOT = Path(__file__).resolve().parents[1]
CONCURRENCIES = (1, 16, 64)
KINDS = ("json", "sse")
REQUEST_BYTES = 40_000
CALLS_OF_A_SESSION = 50
TICKS = os.sysconf("SC_CLK_TCK")

UPSTREAM = """
import asyncio, json, sys
from aiohttp import web
USAGE = {"input_tokens": 9, "output_tokens": 20, "cache_read_input_tokens": 9000, "cache_creation_input_tokens": 500}
TEXT = "word " * 400
count = 0
def message(number, content):
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-opus-5-5",
            "content": content, "stop_reason": "end_turn", "stop_sequence": None, "usage": USAGE}
async def answer(request):
    global count
    count += 1
    body = json.loads(await request.read())
    if not body.get("stream"):
        return web.json_response(message(count, [{"type": "text", "text": TEXT}]), headers={"request-id": f"r{count}"})
    response = web.StreamResponse(headers={"content-type": "text/event-stream", "request-id": f"r{count}"})
    await response.prepare(request)
    events = [{"type": "message_start", "message": message(count, []) | {"stop_reason": None}},
              {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}]
    events += [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word " * 10}}] * 40
    events += [{"type": "content_block_stop", "index": 0},
               {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 400}},
               {"type": "message_stop"}]
    for event in events:
        await response.write(f"event: {event['type']}\\ndata: {json.dumps(event)}\\n\\n".encode())
    await response.write_eof()
    return response
app = web.Application(client_max_size=2**28)
app.router.add_post("/v1/messages", answer)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)
"""

# The floor: it passes bytes and reads the usage out of them, and does nothing else.
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
    """`pids` are the processes whose work is counted, by what they are."""

    name: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    pids: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Round:
    per_second: float
    p50_ms: float
    p95_ms: float
    ttfb_ms: float
    failed: int
    cpu_ms: dict[str, float]  # a request, by process


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


# --- load ---


async def ask(
    session: aiohttp.ClientSession, contender: Contender, body: bytes, session_name: str
) -> tuple[float, float, bool]:
    headers = {
        "content-type": "application/json",
        "x-api-key": "sk-bench",
        "anthropic-version": "2023-06-01",
        "x-claude-code-session-id": session_name,
        **contender.headers,
    }
    began = time.perf_counter()
    async with session.post(f"{contender.url}/v1/messages", data=body, headers=headers) as response:
        first = await response.content.readany()
        first_at = time.perf_counter()
        rest = await response.read()
        is_good = response.status == 200 and b"word" in first + rest
    return time.perf_counter() - began, first_at - began, is_good


async def load(contender: Contender, kind: str, concurrency: int, seconds: float) -> list[tuple[float, float, bool]]:
    results: list[tuple[float, float, bool]] = []
    stop_at = time.perf_counter() + seconds

    async def one(lane: int) -> None:
        number = 0
        while time.perf_counter() < stop_at:
            number += 1
            name = f"{contender.name}-{concurrency}-{lane}-{number // CALLS_OF_A_SESSION}-{stop_at:.0f}"
            results.append(await ask(session, contender, make_body(kind, number), name))

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(one(lane) for lane in range(concurrency)))
    return results


def measure(contender: Contender, kind: str, concurrency: int, seconds: float) -> Round:
    before = {name: read_cpu(pid) for name, pid in contender.pids.items()}
    began = time.perf_counter()
    results = asyncio.run(load(contender, kind, concurrency, seconds))
    wall = time.perf_counter() - began
    if "recorder" in contender.pids:
        wait_until_idle(contender.pids["recorder"])
    cpu_ms = {name: (read_cpu(pid) - before[name]) * 1000 / len(results) for name, pid in contender.pids.items()}
    times = sorted(result[0] * 1000 for result in results)
    return Round(
        per_second=len(results) / wall,
        p50_ms=statistics.median(times),
        p95_ms=times[int(len(times) * 0.95)],
        ttfb_ms=statistics.median(result[1] * 1000 for result in results),
        failed=sum(not result[2] for result in results),
        cpu_ms=cpu_ms,
    )


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


# --- contenders ---


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
    return Contender("plimsoll", f"http://127.0.0.1:{port}/proxy", pids=pids)


def start_litellm(stack: ExitStack, scratch: Path, upstream: str) -> Contender | None:
    """Its own environment, with what it needs to serve; None, with a sentence, where that cannot be had."""
    folder = Path(os.environ.get("PLIMSOLL_BENCH_LITELLM", scratch / "litellm"))
    python = folder / "bin" / "python"
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    if not python.exists():
        for command in (
            [uv, "venv", "-q", str(folder)],
            [uv, "pip", "install", "-q", "-p", str(python), "litellm[proxy]", "opentelemetry-sdk"],
        ):
            try:
                subprocess.run(command, check=True, capture_output=True, timeout=600)
            except (OSError, subprocess.SubprocessError) as error:
                print(f"LiteLLM is left out: it does not install here ({type(error).__name__}).")
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


def start_all(stack: ExitStack, scratch: Path, *, with_litellm: bool) -> list[Contender]:
    port = free_port()
    upstream = f"http://127.0.0.1:{port}"
    stack.enter_context(started([sys.executable, "-c", UPSTREAM, str(port)], port, scratch / "upstream.log"))
    return start_contenders(stack, scratch, upstream, with_litellm=with_litellm)


def start_contenders(stack: ExitStack, scratch: Path, upstream: str, *, with_litellm: bool) -> list[Contender]:
    contenders = [Contender("direct", upstream)]
    port = free_port()
    command = [sys.executable, "-c", BARE, str(port), upstream]
    if has_starlette():
        bare = stack.enter_context(started(command, port, scratch / "bare.log"))
        contenders.append(Contender("bare relay", f"http://127.0.0.1:{port}", pids={"relay": bare.pid}))
    else:
        print("The bare relay is left out: starlette is not installed (pip install starlette).")
    contenders.append(start_plimsoll(stack, scratch, upstream))
    if with_litellm and (litellm := start_litellm(stack, scratch, upstream)):
        contenders.append(litellm)
    return contenders


def has_starlette() -> bool:
    return subprocess.run([sys.executable, "-c", "import starlette"], capture_output=True, check=False).returncode == 0


# --- telling ---

Results = dict[tuple[str, str, int], list[Round]]


def take_median(rounds: list[Round]) -> Round:
    def middle(name: str) -> float:
        return statistics.median(getattr(each, name) for each in rounds)

    names = rounds[0].cpu_ms
    cpu_ms = {name: statistics.median(each.cpu_ms[name] for each in rounds) for name in names}
    return Round(
        middle("per_second"),
        middle("p50_ms"),
        middle("p95_ms"),
        middle("ttfb_ms"),
        sum(each.failed for each in rounds),
        cpu_ms,
    )


def print_results(contenders: list[Contender], results: Results) -> None:
    head = (
        f"{'kind':<6}{'at once':>8}  {'through':<12}{'req/s':>9}{'p50':>9}{'p95':>9}{'+p50':>8}{'+p95':>8}{'+TTFB':>8}"
    )
    print(f"\n{head}  failed  CPU ms a request")
    for kind in KINDS:
        for concurrency in CONCURRENCIES:
            medians = {each.name: take_median(results[each.name, kind, concurrency]) for each in contenders}
            floor = medians["direct"]
            for name, told in medians.items():
                cpu = ", ".join(f"{process} {spent:.2f}" for process, spent in told.cpu_ms.items())
                added = (told.p50_ms - floor.p50_ms, told.p95_ms - floor.p95_ms, told.ttfb_ms - floor.ttfb_ms)
                figures = f"{told.per_second:>9.0f}{told.p50_ms:>9.2f}{told.p95_ms:>9.2f}"
                figures += "".join(f"{each:>8.2f}" for each in added)
                print(f"{kind:<6}{concurrency:>8}  {name:<12}{figures}{told.failed:>8}  {cpu}")
            if "litellm" in medians:
                ratio = medians["plimsoll"].per_second / medians["litellm"].per_second
                print(f"{'':<16}plimsoll / litellm = {ratio:.1f}")
            if "bare relay" in medians:
                ratio = medians["plimsoll"].cpu_ms["web"] / medians["bare relay"].cpu_ms["relay"]
                print(f"{'':<16}CPU plimsoll / bare relay = {ratio:.2f}")


def measure_memory(contenders: list[Contender], calls: int) -> None:
    print(f"\nMemory after {calls:,} calls")
    for contender in contenders:
        if not contender.pids:
            continue

        async def many(contender: Contender = contender) -> None:
            async with aiohttp.ClientSession() as session:
                for start in range(0, calls, 16):
                    bodies = [make_body("json", start + each) for each in range(16)]
                    await asyncio.gather(
                        *(
                            ask(session, contender, body, f"memory-{start // 800}-{lane}")
                            for lane, body in enumerate(bodies)
                        )
                    )

        asyncio.run(many())
        told = ", ".join(f"{name} {read_memory_mb(pid):.0f} MB" for name, pid in contender.pids.items())
        print(f"  {contender.name:<12} {told}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--calls", type=int, default=10_000, help="for the figure of memory; 0 leaves it out")
    parser.add_argument("--without-litellm", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plimsoll-bench-") as name, ExitStack() as stack:
        contenders = start_all(stack, Path(name), with_litellm=not options.without_litellm)
        for contender in contenders:
            measure(contender, "json", 4, 1)  # warm up
        results: Results = defaultdict(list)
        for _ in range(options.rounds):
            for kind in KINDS:
                for concurrency in CONCURRENCIES:
                    for contender in contenders:
                        told = measure(contender, kind, concurrency, options.seconds)
                        results[contender.name, kind, concurrency].append(told)
        print_results(contenders, results)
        if options.calls:
            measure_memory(contenders, options.calls)


if __name__ == "__main__":
    main()
