"""How many calls pass in a second when load and upstream cost next to nothing: wrk before, nginx behind.

The second part of bench.proxy: the same contenders and 40 KB requests, answers in one piece. Where calls come faster
than the recorder can write, it leaves some out and counts them: its share is told for each call that it wrote down.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.proxy_contenders import (
    CALLS_OF_A_SESSION,
    CONCURRENCIES,
    KINDS,
    Contender,
    free_port,
    make_body,
    read_cpu,
    start_contenders,
    started,
    wait_until_idle,
)

NGINX_PATHS = ("nginx", "/usr/sbin/nginx")
USAGE = {"input_tokens": 9, "output_tokens": 20, "cache_read_input_tokens": 9000, "cache_creation_input_tokens": 500}
NGINX = """
daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 1024; }}
http {{
    access_log off; client_body_temp_path {folder}/bodies; client_body_buffer_size 128k; keepalive_requests 100000000;
    proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    server {{ listen 127.0.0.1:{port}; location / {{ default_type {type}; return 200 '{answer}'; }} }}
}}
"""
LUA = """
local count, body = 0, io.open("{body}", "rb"):read("*a")
local headers = {headers}
request = function()
    count = count + 1
    headers["x-claude-code-session-id"] = "{name}-" .. math.floor(count / {calls_of_a_session})
    return wrk.format("POST", nil, headers, body)
end
done = function(summary, latency, requests)
    io.write(string.format("p50 %d us, p95 %d us\\n", latency:percentile(50), latency:percentile(95)))
end
"""


@dataclass(frozen=True)
class Drive:
    """`cpu_ms` is of a call, of the recorder of one that it wrote down."""

    per_second: float
    p50_ms: float
    p95_ms: float
    failed: int
    count: int
    recorded: int
    cpu_ms: dict[str, float]


def find_missing() -> str:
    """The first program that is not installed; empty when all are."""
    if find_nginx() is None:
        return "nginx"
    return "" if shutil.which("wrk") else "wrk"


def find_nginx() -> str | None:
    return next((found for name in NGINX_PATHS if (found := shutil.which(name))), None)


def write_answer(kind: str) -> str:
    """With a variable of nginx as the message's id: calls with one id would be one call."""
    message = {
        "id": "msg_$request_id",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5-5",
        "usage": USAGE,
    }
    if kind == "json":
        text = {"type": "text", "text": "word " * 400}
        return json.dumps(message | {"content": [text], "stop_reason": "end_turn"})
    delta: dict[str, object] = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "word " * 10},
    }
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": message | {"content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *[delta] * 16,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 160}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def start_nginx(stack: ExitStack, folder: Path, kind: str) -> str:
    port, config = free_port(), folder / "nginx.conf"
    content_type = "application/json" if kind == "json" else "text/event-stream"
    config.write_text(NGINX.format(folder=folder, port=port, type=content_type, answer=write_answer(kind)))
    program = find_nginx() or "nginx"
    stack.enter_context(started([program, "-c", str(config)], port, folder / "nginx.out"))
    return f"http://127.0.0.1:{port}"


def drive(contender: Contender, kind: str, at_once: int, folder: Path, seconds: int) -> Drive:
    headers = {"content-type": "application/json", "x-api-key": "sk-bench", "anthropic-version": "2023-06-01"}
    spelt = ", ".join(f'["{name}"] = "{value}"' for name, value in (headers | contender.headers).items())
    body, script = folder / "body", folder / "wrk.lua"
    body.write_bytes(make_body(kind, 1))
    name = f"wrk-{time.monotonic_ns()}"
    script.write_text(LUA.format(body=body, headers=f"{{{spelt}}}", name=name, calls_of_a_session=CALLS_OF_A_SESSION))
    before = {process: read_cpu(pid) for process, pid in contender.pids.items()}
    recorded_before = contender.count_recorded()
    command = ["wrk", "-t1", f"-c{at_once}", f"-d{seconds}s", "-s", str(script), f"{contender.url}/v1/messages"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "recorder" in contender.pids:
        wait_until_idle(contender.pids["recorder"])
    count, recorded = int(_find(r"(\d+) requests in", told)), contender.count_recorded() - recorded_before
    spent = {process: (read_cpu(pid) - before[process]) * 1000 for process, pid in contender.pids.items()}
    return Drive(
        per_second=float(_find(r"Requests/sec:\s+([\d.]+)", told)),
        p50_ms=int(_find(r"p50 (\d+) us", told)) / 1000,
        p95_ms=int(_find(r"p95 (\d+) us", told)) / 1000,
        failed=int(_find(r"Non-2xx.*: (\d+)", told) or 0),
        count=count,
        recorded=recorded,
        cpu_ms={
            process: each / max(1, recorded if process == "recorder" else count) for process, each in spent.items()
        },
    )


def _find(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[1] if found else ""


def tell(kind: str, at_once: int, name: str, drives: list[Drive]) -> float:
    """Prints the medians of a contender; returns its calls a second."""
    rate, p50, p95 = (
        statistics.median(getattr(each, what) for each in drives) for what in ("per_second", "p50_ms", "p95_ms")
    )
    cpu = ", ".join(
        f"{process} {statistics.median(each.cpu_ms[process] for each in drives):.2f}" for process in drives[0].cpu_ms
    )
    failed, count, recorded = (sum(getattr(each, what) for each in drives) for what in ("failed", "count", "recorded"))
    kept = f", recorded {recorded:,} of {count:,}" if recorded else ""
    print(
        f"{kind:<5}{at_once:>3} {name:<11}{rate:>8.0f} calls/s, p50 {p50:.2f} ms, p95 {p95:.2f} ms, failed {failed}, "
        f"CPU ms a call: {cpu}{kept}"
    )
    return rate


def compare(kind: str, scratch: Path, options: argparse.Namespace) -> None:
    folder = scratch / f"throughput-{kind}"
    folder.mkdir()
    with ExitStack() as stack:
        upstream = start_nginx(stack, folder, kind)
        contenders = start_contenders(
            stack, folder, upstream, environments=scratch, with_litellm=not options.without_litellm
        )
        for contender in contenders:
            drive(contender, kind, 16, folder, 2)  # warm up
        drives: dict[tuple[int, str], list[Drive]] = defaultdict(list)
        for _ in range(options.rounds):
            for at_once in CONCURRENCIES:
                for contender in contenders:
                    drives[at_once, contender.name].append(drive(contender, kind, at_once, folder, options.seconds))
    for at_once in CONCURRENCIES:
        rates = {each.name: tell(kind, at_once, each.name, drives[at_once, each.name]) for each in contenders}
        ratios = (
            f"{peer} {rates['plimsoll'] / rates[peer]:.2f}" for peer in ("bare relay", "litellm") if peer in rates
        )
        print(f"{'':<9}plimsoll / {', / '.join(ratios)}")


def measure_throughput(scratch: Path, options: argparse.Namespace) -> None:
    print("\nThroughput, with wrk and nginx")
    for kind in KINDS:
        compare(kind, scratch, options)
