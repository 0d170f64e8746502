"""What Claude Code waits for: CPU and wall time of `plimsoll hook` and `plimsoll statusline`, interpreter included.
`python -m bench.client_programs`, under a minute. Goals, CPU and wall: 60 ms a status line, 100 ms a hook.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = [sys.executable, "-P", "-m", "dashboard.console"]
STATUS_GOAL_MS, HOOK_GOAL_MS = 60.0, 100.0
SESSION = {"session_id": "11111111-2222-4333-8444-555555555555", "cwd": "/home/ann/harbour"}
STATUS = SESSION | {
    "model": {"id": "claude-opus-4-5"},
    "version": "2.1.325",
    "context_window": {"context_window_size": 200_000, "current_usage": {"cache_read_input_tokens": 96_000}},
    "prompt_cache": {"warm": True, "misses": 1},
}
HOOK = SESSION | {"hook_event_name": "Stop", "last_assistant_message": "x" * 20_000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # Nobody listens there: each run keeps an event and starts a sender, which is not counted.
        connection = {"url": "http://127.0.0.1:9", "key": "plk_x"}
        Path(folder, "connection.json").write_text(json.dumps(connection))
        compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(Path(folder, "bytecode"))}
        environment = os.environ | compiled | {"PLIMSOLL_CLIENT_FOLDER": folder}
        measure("python alone", [sys.executable, "-c", "pass"], [{}] * (rounds + 1), environment)
        measure("hook", [*PROGRAM, "hook"], [HOOK] * (rounds + 1), environment, goal_ms=HOOK_GOAL_MS)
        told = [STATUS | {"cost": {"total_cost_usd": number}} for number in range(rounds + 1)]
        measure("statusline", [*PROGRAM, "statusline"], told, environment, goal_ms=STATUS_GOAL_MS)
        new = [STATUS | {"model": {"id": f"claude-opus-4-5-2025{number:04d}"}} for number in range(rounds + 1)]
        measure("statusline, a model it has not seen", [*PROGRAM, "statusline"], new, environment)


def measure(
    name: str,
    command: list[str],
    inputs: list[dict[str, object]],
    environment: dict[str, str],
    *,
    goal_ms: float | None = None,
) -> None:
    subprocess.run(command, input=json.dumps(inputs[0]).encode(), env=environment, capture_output=True, check=True)
    cpu, wall = [], []
    for told in inputs[1:]:  # the first filled the caches
        before, began = _read_cpu_ms(), time.perf_counter()
        subprocess.run(command, input=json.dumps(told).encode(), env=environment, capture_output=True, check=True)
        wall.append((time.perf_counter() - began) * 1000)
        cpu.append(_read_cpu_ms() - before)
    figures = statistics.median(cpu), statistics.median(wall)
    verdict = "" if goal_ms is None else f"  goal {goal_ms:g} ms  {'ok' if max(figures) < goal_ms else 'MISSED'}"
    print(f"{name:<36} CPU {figures[0]:5.0f} ms (best {min(cpu):.0f}), wall {figures[1]:5.0f} ms{verdict}")


def _read_cpu_ms() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


if __name__ == "__main__":
    main()
