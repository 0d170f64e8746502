"""A made-up `.claude` home of any size with known truth: same seed, same bytes.

Run: python -m bench.corpus FOLDER --mb 100.
Shaped like 448 public sessions: answers of several lines whose output grows, tool results stored twice, sub-agents,
forks that repeat the head of another session (ids and all, even cut inside an answer), compactions, cache breaks.
"""

import argparse
import bisect
import itertools
import json
import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

SESSIONS_PER_MB = 1.0
PROJECTS = 25
POOL_BYTES = 4_000_000
AUTO_COMPACT_TOKENS = 167_000
FORK_SHARE, AGENT_SHARE, CUT_SHARE, BREAK_SHARE = 0.03, 0.4, 0.01, 1 / 39
# Lines of one answer: 1 to 8, as counted over 21,592 answers.
LINE_COUNTS, LINE_WEIGHTS = range(1, 9), (4005, 11838, 4347, 892, 247, 134, 65, 64)
FIRST_DAY_MS = int(datetime(2026, 9, 20, tzinfo=UTC).timestamp() * 1000)
DAYS_MS = 55 * 86_400_000
# Dollars per million tokens, from the published list: input, 5-minute write, 1-hour write, read, output.
PRICES = {
    "claude-opus-4-5-20251101": (5.0, 6.25, 10.0, 0.5, 25.0),
    "claude-sonnet-4-5-20250929": (3.0, 3.75, 6.0, 0.3, 15.0),
}
KINDS = ("input", "write_5m", "write_1h", "read", "output")
TOOLS = ("Bash", "Read", "Grep", "Edit")
VOCABULARY = (
    "def return self import from class async await session context number cache prompt window compact threshold model "
    "request response header body stream chunk event error retry limit usage input output tool result file path line "
    "the a of to in and is for with on that by as it be this was are if not or an at which can has have will None True"
)
WORDS = VOCABULARY.split()
MARKS = ("\n", "\n    ", "\n        ", " ", " ", " ", " ", " ", ", ", " = ", "(", ")\n", ": ", '"', "'", "→", ".", "/")


@dataclass
class Truth:
    """What a reader must find: calls once per message id, the largest output of each."""

    files: int = 0
    sessions: int = 0
    agents: int = 0
    forks: int = 0
    lines: int = 0
    size_bytes: int = 0
    malformed_lines: int = 0
    compactions: int = 0
    calls: Counter[str] = field(default_factory=Counter)  # by model
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter)  # by model and kind

    def add(self, other: "Truth") -> None:
        for name, value in vars(other).items():
            if isinstance(value, Counter):
                getattr(self, name).update(value)
            else:
                setattr(self, name, getattr(self, name) + value)

    @property
    def totals(self) -> dict[str, int]:
        """Calls and tokens by kind, all models together."""
        sums = {kind: sum(self.tokens[model, kind] for model in PRICES) for kind in KINDS}
        return {"calls": self.calls.total(), **sums}

    @property
    def cost_usd(self) -> float:
        return sum(
            self.tokens[model, kind] * price / 1e6
            for model, prices in PRICES.items()
            for kind, price in zip(KINDS, prices, strict=True)
        )


@cache
def make_pool(seed: int) -> tuple[bytes, list[int]]:
    """Text of words, names and numbers, already escaped for JSON, and the places where it may be cut."""
    chance = random.Random(seed)
    names = [f"{first}_{second}" for first, second in itertools.product(WORDS[:48], repeat=2)]
    pieces, cuts, size = [], [0], 0
    while size < POOL_BYTES:
        kind = chance.random()
        word = (
            chance.choice(WORDS) if kind < 0.62 else chance.choice(names) if kind < 0.9 else str(chance.randrange(9999))
        )
        piece = json.dumps(word + chance.choice(MARKS), ensure_ascii=False)[1:-1].encode()
        pieces.append(piece)
        size += len(piece)
        cuts.append(size)
    return b"".join(pieces), cuts


def format_time(at_ms: int) -> bytes:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return b"%s.%03dZ" % (at.strftime("%Y-%m-%dT%H:%M:%S").encode(), at_ms % 1000)


class Session:
    """Writes the lines of one file and counts what they say."""

    def __init__(self, seed: str, pool_seed: int, *, agent_of: "Session | None" = None) -> None:
        self.chance = random.Random(seed)
        self.pool, self.cuts = make_pool(pool_seed)
        self.lines: list[bytes] = []
        self.truth = Truth(files=1, sessions=0 if agent_of else 1, agents=1 if agent_of else 0)
        self.agent_id = self.hex_id(17) if agent_of else b""
        self.session_id: bytes = agent_of.session_id if agent_of else self.make_uuid()
        self.folder: bytes = (
            agent_of.folder if agent_of else b"/home/dev/projects/app-%02d" % self.chance.randrange(PROJECTS)
        )
        self.at_ms: int = agent_of.at_ms if agent_of else FIRST_DAY_MS + self.chance.randrange(DAYS_MS)
        self.model = self.chance.choice(tuple(PRICES))
        self.has_hour_cache = self.chance.random() < 0.4
        self.never_tells_stop = (
            self.chance.random() < 0.3
        )  # older clients write no stop reason; their output is a guess
        self.parent = b"null"
        version = self.chance.choice((b"2.0.76", b"2.1.12", b"2.1.39", b"2.1.112"))
        agent = b',"agentId":"%s"' % self.agent_id if agent_of else b""
        self.common = (
            b'"isSidechain":%s,"userType":"external","cwd":"%s","sessionId":"%s","version":"%s","gitBranch":"main"%s'
            % (b"true" if agent_of else b"false", self.folder, self.session_id, version, agent)
        )

    def hex_id(self, digits: int) -> bytes:
        return b"%0*x" % (digits, self.chance.getrandbits(4 * digits))

    def make_uuid(self) -> bytes:
        text = self.hex_id(32)
        return b"%s-%s-4%s-a%s-%s" % (text[:8], text[8:12], text[13:16], text[17:20], text[20:])

    def pick_size(self, median: int, sigma: float, largest: int) -> int:
        return max(8, min(largest, int(self.chance.lognormvariate(0, sigma) * median)))

    def pick_text(self, median: int, sigma: float = 0.9, largest: int = 8_000) -> bytes:
        size = self.pick_size(median, sigma, largest)
        start = self.cuts[self.chance.randrange(len(self.cuts))]
        if start + size > len(self.pool):
            start = 0
        return self.pool[start : self.cuts[bisect.bisect_left(self.cuts, start + size)]]

    def write_line(self, body: bytes) -> None:
        self.at_ms += self.chance.randrange(5, 900)
        uuid = self.make_uuid()
        self.lines.append(
            b'{"parentUuid":%s,%s,%s,"uuid":"%s","timestamp":"%s"}\n'
            % (self.parent, self.common, body, uuid, format_time(self.at_ms))
        )
        self.parent = b'"%s"' % uuid

    def write_session(self, turns: int) -> None:
        context = self.chance.randrange(14_000, 24_000)
        cached = 0
        for _ in range(turns):
            self.at_ms += self.chance.choice((5, 12, 30, 60, 90, 200, 420, 1500)) * 1000
            prompt = self.pick_text(180, largest=6_000)
            self.write_line(b'"type":"user","message":{"role":"user","content":"%s"}' % prompt)
            fresh = len(prompt) // 4 + 30
            for _ in range(1 + min(30, int(self.chance.expovariate(1 / 6)))):
                is_cold = cached == 0 or self.chance.random() < BREAK_SHARE
                read, written = (0, context + fresh) if is_cold else (cached, fresh)
                output, result_bytes = self.write_answer(read, written)
                cached = read + written
                context, fresh = cached + output, output + result_bytes // 4 + 25
                if context + fresh > AUTO_COMPACT_TOKENS:
                    context, cached, fresh = self.write_compaction(context + fresh), 0, 0

    def write_answer(self, read: int, written: int) -> tuple[int, int]:
        """The lines of one answer and its tool results; its output, and the bytes of the results."""
        message_id, request_id = b"msg_01" + self.hex_id(22), b"req_01" + self.hex_id(22)
        self.at_ms += self.chance.randrange(1_500, 14_000)
        tools: list[tuple[bytes, str, bytes, bytes]] = []
        blocks = list(self.make_blocks(tools))
        plain = self.chance.choice((1, 3, 4, 5, 8, 10))
        output = sum(map(len, blocks)) // 3 + 60 * len(blocks)  # above any estimate by characters, whole or cut
        write_5m, write_1h = (0, written) if self.has_hour_cache else (written, 0)
        for number, block in enumerate(blocks, 1):
            is_last = number == len(blocks)
            stop = b'"tool_use"' if is_last and not self.never_tells_stop else b"null"
            self.write_line(
                b'"message":{"model":"%s","id":"%s","type":"message","role":"assistant","content":[%s],"stop_reason":%s,'
                b'"stop_sequence":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,'
                b'"cache_read_input_tokens":%d,"cache_creation":{"ephemeral_5m_input_tokens":%d,'
                b'"ephemeral_1h_input_tokens":%d},"output_tokens":%d,"service_tier":"standard"}},"requestId":"%s",'
                b'"type":"assistant"'
                % (
                    self.model.encode(), message_id, block, stop, plain, written, read, write_5m, write_1h,
                    output if is_last else max(1, output * number // (len(blocks) * 20)), request_id,
                )
            )  # fmt: skip
        self.truth.calls[self.model] += 1
        for kind, count in zip(KINDS, (plain, write_5m, write_1h, read, output), strict=True):
            self.truth.tokens[self.model, kind] += count
        return output, sum(self.write_result(*tool) for tool in tools)

    def make_blocks(self, tools: list[tuple[bytes, str, bytes, bytes]]) -> Iterator[bytes]:
        """The last block asks for a tool; those before think, speak or ask for more of them."""
        count = self.chance.choices(LINE_COUNTS, LINE_WEIGHTS)[0]
        for number in range(1, count + 1):
            kind = self.chance.random()
            if number < count and kind < 0.4:
                signature = self.hex_id(344)
                yield b'{"type":"thinking","thinking":"%s","signature":"%s"}' % (self.pick_text(500), signature)
            elif number < count and kind < 0.85:
                yield b'{"type":"text","text":"%s"}' % self.pick_text(260, largest=5_000)
            else:
                yield self.make_tool_use(tools)

    def make_tool_use(self, tools: list[tuple[bytes, str, bytes, bytes]]) -> bytes:
        use_id, name = b"toolu_01" + self.hex_id(22), self.chance.choice(TOOLS)
        path = b"%s/src/module_%d.py" % (self.folder, self.chance.randrange(400))
        edit = b""
        if name == "Edit":
            edit = b'"old_string":"%s","new_string":"%s"' % (self.pick_text(300), self.pick_text(400))
            given = b'"file_path":"%s",%s' % (path, edit)
        elif name == "Bash":
            given = b'"command":"%s","description":"%s"' % (self.pick_text(90, largest=2_000), self.pick_text(40))
        else:
            given = b'"file_path":"%s","offset":%d,"limit":200' % (path, self.chance.randrange(900))
        tools.append((use_id, name, path, edit))
        return b'{"type":"tool_use","id":"%s","name":"%s","input":{%s}}' % (use_id, name.encode(), given)

    def write_result(self, use_id: bytes, name: str, path: bytes, edit: bytes) -> int:
        """The text stands twice: as the model saw it and in the client's own form."""
        self.at_ms += self.chance.randrange(100, 6_000)
        text = self.pick_text(1_000, 1.25, 60_000)
        if name == "Bash":
            own = b'"stdout":"%s","stderr":"","interrupted":false,"isImage":false' % text
        elif name == "Edit":
            own = b'"filePath":"%s",%s,"originalFile":"%s","structuredPatch":[]' % (path, edit, text)
        else:
            own = b'"type":"text","file":{"filePath":"%s","content":"%s","numLines":40,"startLine":1}' % (path, text)
        self.write_line(
            b'"type":"user","message":{"role":"user","content":[{"tool_use_id":"%s","type":"tool_result",'
            b'"content":"%s","is_error":%s}]},"toolUseResult":{%s}'
            % (use_id, text, b"true" if self.chance.random() < 0.04 else b"false", own)
        )
        return len(text)

    def write_compaction(self, before_tokens: int) -> int:
        """Boundary and summary; the context that is left."""
        last, self.parent = self.parent, b"null"
        self.write_line(
            b'"logicalParentUuid":%s,"type":"system","subtype":"compact_boundary","content":"Conversation compacted",'
            b'"isMeta":false,"level":"info","compactMetadata":{"trigger":"auto","preTokens":%d}' % (last, before_tokens)
        )
        summary = self.pick_text(9_000, 0.3, 30_000)
        self.write_line(
            b'"type":"user","message":{"role":"user","content":"This session is being continued from a previous '
            b'conversation that ran out of context. %s"},"isVisibleInTranscriptOnly":true,"isCompactSummary":true'
            % summary
        )
        self.truth.compactions += 1
        return 20_000 + len(summary) // 4


def make_session(seed: int, index: int) -> Session:
    """The main file of a session, without what a fork repeats."""
    session = Session(f"{seed}/{index}", seed)
    session.lines.append(
        b'{"type":"summary","summary":"%s","leafUuid":"%s"}\n' % (session.pick_text(40), session.make_uuid())
    )
    session.write_session(session.pick_size(7, 0.8, 120))
    return session


def take_head(seed: int, index: int, chance: random.Random, session_id: bytes) -> list[bytes]:
    """The head of an earlier session as a fork repeats it: verbatim, or under its own session id."""
    source = make_session(seed, chance.randrange(index))
    head = source.lines[: chance.randrange(1, len(source.lines))]
    return head if chance.random() < 0.5 else [line.replace(source.session_id, session_id) for line in head]


def write_family(folder: Path, seed: int, index: int) -> Truth:
    """A session's file and those of its sub-agents."""
    session = make_session(seed, index)
    chance = random.Random(f"{seed}/{index}/family")
    project = folder / "projects" / session.folder.decode().replace("/", "-")
    if index and chance.random() < FORK_SHARE:
        session.lines[:0] = take_head(seed, index, chance, session.session_id)
        session.truth.forks += 1
    if chance.random() < CUT_SHARE:
        session.lines.insert(len(session.lines) // 2, b'{"type":"user","message":{"role":"us\n')
        session.truth.malformed_lines += 1
    truth = write_file(project / f"{session.session_id.decode()}.jsonl", session)
    if chance.random() < AGENT_SHARE:
        for number in range(chance.randrange(1, 4)):
            agent = Session(f"{seed}/{index}/{number}", seed, agent_of=session)
            agent.write_session(agent.pick_size(3, 0.7, 40))
            place = project / session.session_id.decode() / "subagents" / f"agent-{agent.agent_id.decode()}"
            truth.add(write_file(place.with_suffix(".jsonl"), agent))
            place.with_suffix(".meta.json").write_bytes(b'{"agentType":"Explore","description":"Look around"}')
    return truth


def write_file(path: Path, session: Session) -> Truth:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = b"".join(session.lines)
    path.write_bytes(data)
    os.utime(path, (session.at_ms / 1000, session.at_ms / 1000))
    session.truth.lines += len(session.lines)
    session.truth.size_bytes += len(data)
    return session.truth


def write_corpus(folder: Path, *, size_mb: int, seed: int = 7) -> Truth:
    """Fills the folder on all cores; about this many megabytes, exactly the truth that is returned."""
    truth = Truth()
    tasks = ((folder, seed, index) for index in range(max(1, round(size_mb * SESSIONS_PER_MB))))
    make_pool(seed)  # once, before the processes part
    with multiprocessing.get_context("fork").Pool() as pool:
        for part in pool.starmap(write_family, tasks, chunksize=4):
            truth.add(part)
    return truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    began = time.monotonic()
    truth = write_corpus(options.folder, size_mb=options.mb, seed=options.seed)
    print(
        f"{truth.size_bytes / 1e6:,.0f} MB, {truth.files:,} files, {truth.lines:,} lines, {truth.sessions:,} sessions,"
    )
    print(f"{truth.agents:,} sub-agents, {truth.forks:,} forks, {truth.compactions:,} compactions,")
    print(f"{truth.malformed_lines} malformed lines in {time.monotonic() - began:.1f} s")
    print(", ".join(f"{name} {count:,}" for name, count in truth.totals.items()), f"${truth.cost_usd:,.2f}")


if __name__ == "__main__":
    main()
