"""What the proxy costs: direct, a bare Starlette + aiohttp relay, Plimsoll and LiteLLM in one run.

A loopback upstream answers a 40 KB request with JSON or with an event stream; each contender is asked at concurrency
1, 16 and 64, in interleaved rounds, and medians are shown. The client of the first part is written in Python, tells
the time to the first byte, and takes more of two cores than a proxy does. So the second part, where wrk and nginx are
installed (Debian: wrk, nginx-light), asks again with load and upstream that cost next to nothing.
`python -m bench.proxy`.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench.proxy_contenders import (
    CALLS_OF_A_SESSION,
    CONCURRENCIES,
    KINDS,
    Contender,
    free_port,
    make_body,
    read_cpu,
    read_memory_mb,
    start_contenders,
    started,
    wait_until_idle,
)
from bench.proxy_throughput import find_missing, measure_throughput

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


@dataclass(frozen=True)
class Round:
    per_second: float
    p50_ms: float
    p95_ms: float
    ttfb_ms: float
    failed: int
    cpu_ms: dict[str, float]  # a request, by process


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


def measure_costs(folder: Path, options: argparse.Namespace) -> None:
    with ExitStack() as stack:
        port = free_port()
        upstream = f"http://127.0.0.1:{port}"
        stack.enter_context(started([sys.executable, "-c", UPSTREAM, str(port)], port, folder / "upstream.log"))
        contenders = start_contenders(
            stack, folder, upstream, environments=folder, with_litellm=not options.without_litellm
        )
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--calls", type=int, default=10_000, help="for the figure of memory; 0 leaves it out")
    parser.add_argument("--without-litellm", action="store_true")
    parser.add_argument("--part", choices=("costs", "throughput"), help="one of the two alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plimsoll-bench-") as name:
        if options.part != "throughput":
            measure_costs(Path(name), options)
        if options.part != "costs" and (missing := find_missing()):
            print(f"Throughput is left out: {missing} is not installed.")
        elif options.part != "costs":
            measure_throughput(Path(name), options)


if __name__ == "__main__":
    main()
