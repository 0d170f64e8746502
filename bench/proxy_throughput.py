"""How many calls pass in a second when load and upstream cost next to nothing: wrk before, nginx behind.

The client of bench/proxy.py is written in Python and takes more of two cores than a proxy does, so its rates lie close
together. Here the same contenders are driven by wrk and answered by nginx, 64 at once, a 40 KB request and an answer in
one piece, in interleaved rounds; medians count. With Debian's wrk and nginx-light: `python -m bench.proxy_throughput`.
At these rates the recorder cannot keep up, and says how many calls it left out: they pass all the same.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.proxy import KINDS, Contender, free_port, make_body, read_cpu, start_contenders, started

AT_ONCE = 64
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
    headers["x-claude-code-session-id"] = "wrk-{name}-" .. math.floor(count / 50)
    return wrk.format("POST", nil, headers, body)
end
"""


def write_answer(kind: str) -> str:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "usage": USAGE}
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
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    stack.enter_context(started([program, "-c", str(config)], port, folder / "nginx.out"))
    return f"http://127.0.0.1:{port}"


def drive(contender: Contender, kind: str, folder: Path, seconds: int) -> tuple[float, int, dict[str, float]]:
    """Calls a second, those that failed, and milliseconds of CPU a call by process."""
    headers = {"content-type": "application/json", "x-api-key": "sk-bench", "anthropic-version": "2023-06-01"}
    spelt = ", ".join(f'["{name}"] = "{value}"' for name, value in (headers | contender.headers).items())
    body, script = folder / "body", folder / "wrk.lua"
    body.write_bytes(make_body(kind, 1))
    script.write_text(LUA.format(body=body, headers=f"{{{spelt}}}", name=contender.name))
    before = {name: read_cpu(pid) for name, pid in contender.pids.items()}
    command = ["wrk", "-t1", f"-c{AT_ONCE}", f"-d{seconds}s", "-s", str(script), f"{contender.url}/v1/messages"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    count = int(_find(r"(\d+) requests in", told))
    cpu_ms = {name: (read_cpu(pid) - before[name]) * 1000 / count for name, pid in contender.pids.items()}
    return float(_find(r"Requests/sec:\s+([\d.]+)", told)), int(_find(r"Non-2xx.*: (\d+)", told) or 0), cpu_ms


def _find(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[1] if found else ""


def compare(kind: str, options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="plimsoll-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        upstream = start_nginx(stack, folder, kind)
        contenders = start_contenders(stack, folder, upstream, with_litellm=not options.without_litellm)
        rates: dict[str, list[float]] = {}
        for contender in contenders:
            drive(contender, kind, folder, 2)  # warm up
        for _ in range(options.rounds):
            for contender in contenders:
                rate, failed, cpu_ms = drive(contender, kind, folder, options.seconds)
                rates.setdefault(contender.name, []).append(rate)
                cpu = ", ".join(f"{process} {spent:.2f}" for process, spent in cpu_ms.items())
                print(f"{kind:<5} {contender.name:<11} {rate:8.0f} calls/s, failed {failed}, CPU ms a call: {cpu}")
        medians = {name: statistics.median(each) for name, each in rates.items()}
        for peer in ("bare relay", "litellm"):
            if peer in medians:
                print(f"{kind:<5} plimsoll / {peer} = {medians['plimsoll'] / medians[peer]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--without-litellm", action="store_true")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed.")
    for kind in KINDS:
        compare(kind, options)


if __name__ == "__main__":
    main()
