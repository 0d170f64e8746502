"""The first import of transcripts, and a second one that finds nothing new, against ccusage's native binary in one run.

Run: python -m bench.ingest [--mb 1000] [--rounds 3] [--postgresql].
Interleaved rounds on a made-up corpus with known truth, medians; then one more round that is watched for memory alone.
Not equal work: ccusage prints a table and forgets; Plimsoll keeps every call, judges the cache and stores it all.
"""

import argparse
import compileall
import contextlib
import json
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.corpus import Truth, write_corpus
from bench.process_usage import Usage, measure
from tests.services import started_postgresql

CHECKOUT = Path(__file__).resolve().parents[1]
CCUSAGE_VERSION = "20.0.24"
DROPPED = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "DATABASE_URL")
PLIMSOLL = (sys.executable, "-m", "dashboard.cli")
# An empty installation whose one team stores content, or does not.
PREPARE = """
import django
django.setup()
from dashboard.accounts.local import ensure_local_owner
from dashboard.models import Team, TeamPolicy
ensure_local_owner()
TeamPolicy.objects.create(team=Team.objects.get(is_local=True), version=1, stores_content={stores_content})
"""
TOTALS = """
select count(*), sum(input_tokens), sum(write_5m_tokens), sum(write_1h_tokens), sum(read_tokens), sum(output_tokens),
       sum(cost_usd)
from dashboard_apicall where is_counted
"""


@dataclass(frozen=True)
class Goal:
    """A figure, what it should be at most, and the least that counts as done."""

    name: str
    figure: float
    wanted: float
    floor: float
    unit: str = "x"

    def describe(self) -> str:
        verdict = "ok" if self.figure <= self.wanted else "floor held" if self.figure <= self.floor else "MISSED"
        return f"{self.name:<62}{self.figure:>9.3f} {self.unit:<3} goal {self.wanted:g} [{self.floor:g}]  {verdict}"


class Installation:
    """Plimsoll with a data folder of its own, and an empty PostgreSQL where its address is given."""

    def __init__(self, folder: Path, *, stores_content: bool, database_url: str = "") -> None:
        self.folder, self.database_url = folder, database_url
        kept = {name: value for name, value in os.environ.items() if name not in DROPPED}
        own = {"PLIMSOLL_DATA": str(folder), "DJANGO_SETTINGS_MODULE": "dashboard.settings"}
        self.environment = {**kept, **own, "DATABASE_URL": database_url}
        script = PREPARE.format(stores_content=stores_content)
        for command in ((*PLIMSOLL, "migrate", "-v", "0"), (sys.executable, "-c", script)):
            subprocess.run(command, env=self.environment, cwd=CHECKOUT, check=True)

    def import_corpus(self, corpus: Path, *, watches_memory: bool) -> tuple[Usage, dict[str, float]]:
        command = (*PLIMSOLL, "import", str(corpus), "--json")
        usage = measure(command, environment=self.environment, folder=CHECKOUT, watches_memory=watches_memory)
        return usage, json.loads(usage.output)

    @property
    def database(self) -> Path:
        return self.folder / "plimsoll.sqlite3"

    def read_totals(self) -> tuple[dict[str, int], float]:
        opened = psycopg.connect(self.database_url) if self.database_url else sqlite3.connect(self.database)
        with contextlib.closing(opened) as connection:
            row = connection.execute(TOTALS).fetchone()
        *counts, cost_usd = row or ()
        names = ("calls", "input", "write_5m", "write_1h", "read", "output")
        return dict(zip(names, map(int, counts), strict=True)), float(cost_usd)


def install_ccusage(folder: Path) -> Path | str:
    """The native binary in a scratch folder, or why there is none."""
    if shutil.which("npm") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return "npm or a Linux machine with x86-64 is missing."
    names = [f"ccusage@{CCUSAGE_VERSION}", f"@ccusage/ccusage-linux-x64@{CCUSAGE_VERSION}"]
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    binary = folder / "node_modules/@ccusage/ccusage-linux-x64/bin/ccusage"
    if not binary.exists():
        return f"npm says: {done.stderr.strip()[-300:]}"
    binary.chmod(0o755)  # the package leaves this to its JavaScript starter
    return binary


def run_ccusage(binary: Path, corpus: Path, home: Path, *, watches_memory: bool) -> tuple[Usage, dict[str, float]]:
    environment = {**os.environ, "CLAUDE_CONFIG_DIR": str(corpus), "HOME": str(home)}
    command = (str(binary), "claude", "daily", "--offline", "--json")
    usage = measure(command, environment=environment, folder=home, watches_memory=watches_memory)
    return usage, json.loads(usage.output)["totals"]


def check_ccusage(totals: dict[str, float], truth: Truth) -> str:
    names = {"inputTokens": ("input",), "cacheCreationTokens": ("write_5m", "write_1h"), "cacheReadTokens": ("read",)}
    names["outputTokens"] = ("output",)
    wrong = [name for name, kinds in names.items() if totals[name] != sum(truth.totals[kind] for kind in kinds)]
    wrong += ["totalCost"] if abs(totals["totalCost"] - truth.cost_usd) > 0.005 else []
    return f"differ: {', '.join(wrong)}" if wrong else "equal to the truth"


def check_plimsoll(installation: Installation, truth: Truth) -> str:
    counts, cost_usd = installation.read_totals()
    wrong = [
        f"{name} {count:,} for {truth.totals[name]:,}" for name, count in counts.items() if count != truth.totals[name]
    ]
    wrong += [f"${cost_usd:,.4f} for ${truth.cost_usd:,.4f}"] if abs(cost_usd - truth.cost_usd) > 0.005 else []
    return f"differ: {', '.join(wrong)}" if wrong else "equal to the truth"


class Rounds:
    """Figures by name over all rounds."""

    def __init__(self) -> None:
        self.watches_memory = False  # in this round, whose times are not kept
        self.usages: dict[str, list[Usage]] = defaultdict(list)
        self.peak_bytes: dict[str, int] = {}
        self.inside_seconds: dict[str, list[float]] = defaultdict(list)
        self.checks: dict[str, str] = {}
        self.store_bytes: dict[str, int] = {}

    def median(self, name: str, of: Callable[[Usage], float]) -> float:
        return statistics.median(of(usage) for usage in self.usages[name])

    def add(self, name: str, usage: Usage) -> None:
        if self.watches_memory:
            self.peak_bytes[name] = usage.peak_bytes
        else:
            self.usages[name].append(usage)

    def add_import(self, name: str, installation: Installation, corpus: Path, truth: Truth) -> None:
        """A first import, and one that finds nothing new."""
        for again in ("", " again"):
            usage, summary = installation.import_corpus(corpus, watches_memory=self.watches_memory)
            self.add(name + again, usage)
            if not self.watches_memory:
                self.inside_seconds[name + again].append(summary["seconds"])
        self.checks[name] = check_plimsoll(installation, truth)
        self.store_bytes[name] = sum(path.stat().st_size for path in installation.folder.glob("plimsoll.sqlite3*"))


def run_rounds(scratch: Path, corpus: Path, truth: Truth, *, rounds: int, has_postgresql: bool) -> Rounds:
    told = Rounds()
    binary = install_ccusage(scratch / "npm")
    if isinstance(binary, str):
        print(f"ccusage is left out: {binary}")
    for number in range(rounds + 1):
        told.watches_memory = number == rounds
        if isinstance(binary, Path):
            usage, totals = run_ccusage(binary, corpus, scratch, watches_memory=told.watches_memory)
            told.add("ccusage", usage)
            told.checks["ccusage"] = check_ccusage(totals, truth)
        for name, stores_content in (("metrics", False), ("content", True)):
            installation = Installation(scratch / f"{name}-{number}", stores_content=stores_content)
            told.add_import(name, installation, corpus, truth)
            shutil.rmtree(installation.folder)
        if has_postgresql:
            with started_postgresql() as url:
                installation = Installation(scratch / f"postgresql-{number}", stores_content=False, database_url=url)
                told.add_import("postgresql", installation, corpus, truth)
    return told


def print_rounds(told: Rounds, truth: Truth) -> None:
    print(f"\n{'':<16}{'wall s':>8}{'cpu s':>8}{'peak MB':>9}{'inside s':>10}{'MB/s':>7}  totals")
    for name in told.usages:
        wall, cpu = (
            told.median(name, lambda usage: usage.wall_seconds),
            told.median(name, lambda usage: usage.cpu_seconds),
        )
        peak = told.peak_bytes[name] / 1e6
        inside = statistics.median(told.inside_seconds[name]) if name in told.inside_seconds else wall
        rate = truth.size_bytes / 1e6 / wall
        print(f"{name:<16}{wall:>8.2f}{cpu:>8.2f}{peak:>9.0f}{inside:>10.3f}{rate:>7.0f}  {told.checks.get(name, '')}")


def list_goals(told: Rounds, truth: Truth) -> list[Goal]:
    goals = [
        Goal("metrics only: peak memory", told.peak_bytes["metrics"] / 1e6, 250, 250, "MB"),
        Goal("with content: peak memory", told.peak_bytes["content"] / 1e6, 250, 250, "MB"),
        Goal("with content: store / raw bytes", told.store_bytes["content"] / truth.size_bytes, 0.3, 0.3),
    ]
    if "postgresql" in told.usages:
        seconds = {name: statistics.median(told.inside_seconds[name]) for name in ("metrics", "postgresql")}
        goals.append(Goal("PostgreSQL: seconds / SQLite's", seconds["postgresql"] / seconds["metrics"], 2.0, 2.0))
    if "ccusage" not in told.usages:
        return goals
    peer = told.median("ccusage", lambda usage: usage.wall_seconds)
    ratios = {name: told.median(name, lambda usage: usage.wall_seconds) / peer for name in told.usages}
    inside = statistics.median(told.inside_seconds["metrics again"]) / peer
    return [
        Goal("first import, metrics only: wall / ccusage's", ratios["metrics"], 1.0, 2.0),
        Goal("first import, with content: wall / ccusage's", ratios["content"], 5.0, 10.0),
        Goal("nothing new: wall / ccusage's", ratios["metrics again"], 1 / 3, 1 / 3),
        Goal("nothing new, inside the process: seconds / ccusage's", inside, 0.01, 0.01),
        *goals,
    ]


def main() -> int:
    """The exit code is 1 when a total is wrong or a floor is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=1000, help="size of the corpus")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--postgresql", action="store_true", help="also into a fresh PostgreSQL of this machine")
    options = parser.parse_args()
    for folder in (CHECKOUT / "dashboard", CHECKOUT / "compaction", sysconfig.get_path("purelib")):
        compileall.compile_dir(str(folder), quiet=2, workers=0)
    with tempfile.TemporaryDirectory(prefix="plimsoll-bench-") as name:
        scratch = Path(name)
        truth = write_corpus(scratch / "corpus", size_mb=options.mb, seed=options.seed)
        size = f"{truth.size_bytes / 1e6:,.0f} MB, {truth.files:,} files, {truth.calls.total():,} calls"
        print(f"{size}, seed {options.seed}", flush=True)
        told = run_rounds(scratch, scratch / "corpus", truth, rounds=options.rounds, has_postgresql=options.postgresql)
    print_rounds(told, truth)
    goals = list_goals(told, truth)
    print("\n" + "\n".join(goal.describe() for goal in goals))
    is_right = all(check.startswith("equal") for check in told.checks.values())
    return 0 if is_right and all(goal.figure <= goal.floor for goal in goals) else 1


if __name__ == "__main__":
    raise SystemExit(main())
