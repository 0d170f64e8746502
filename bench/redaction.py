"""How fast secrets are redacted on one core, beside two floors of the same run: counting one byte, decoding the JSON.

`python bench/redaction.py [folder of .jsonl files]`; without a folder, made-up lines. Medians of CPU time; the floors
and the redaction take turns, so that a busy machine slows both.
"""

import argparse
import base64
import json
import random
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))

from dashboard.ingest.redaction import FORMS, Redactor

ROUNDS = 9
PIECE = 256 * 1024
MEGABYTE = 1e6
WORDS = ("the", "cache", "broke", "because", "a", "tool", "changed", "its", "schema", "and", "every", "token", "was")


def made_up_lines(count: int = 3000) -> list[bytes]:
    chance = random.Random(7)
    lines = []
    for _ in range(count):
        text = " ".join(chance.choices(WORDS, k=chance.randrange(20, 300)))
        entry = {"type": "assistant", "uuid": str(uuid.UUID(int=chance.getrandbits(128))), "requestId": "req_011CNx"}
        usage = {"input_tokens": chance.randrange(9999), "cache_read_input_tokens": chance.randrange(99999)}
        lines.append(json.dumps(entry | {"message": {"content": text, "usage": usage}}).encode())
    return lines


def pieces_of(lines: list[bytes]) -> list[bytes]:
    """Whole lines, joined up to about PIECE bytes."""
    pieces, piece, size = [], list[bytes](), 0
    for line in lines:
        piece.append(line)
        size += len(line)
        if size >= PIECE:
            pieces.append(b"\n".join(piece))
            piece, size = [], 0
    return [*pieces, b"\n".join(piece)] if piece else pieces


def time_of(work: Callable[[bytes], object], texts: list[bytes]) -> float:
    began = time.process_time()
    for text in texts:
        work(text)
    return time.process_time() - began


def measure(name: str, texts: list[bytes], redactor: Redactor) -> None:
    """Prints MB/s, and how many times the time of each floor the redaction takes."""
    lines = [line for text in texts for line in text.splitlines()]
    taken, counting, decoding = [], [], []
    for _ in range(ROUNDS):
        counting.append(time_of(lambda text: text.count(b"\n"), texts))
        decoding.append(time_of(msgspec.json.decode, lines))
        taken.append(time_of(redactor.redact, texts))
    hits = sum(sum(redactor.redact(text).counts.values()) for text in texts)
    size, median = sum(map(len, texts)) / MEGABYTE, statistics.median(taken)
    print(
        f"{name:<32} {size:6.1f} MB {size / median:6.0f} MB/s"
        f" {median / statistics.median(counting):7.1f} x count {median / statistics.median(decoding):6.2f} x decode"
        f" {hits:6} redacted"
    )


def worst(redactor: Redactor) -> tuple[float, str]:
    """The slowest of texts made of nothing but one literal of the table."""
    rates = []
    for literal in {literal for form in FORMS for literal in form.literals}:
        text = literal * (100_000 // len(literal))
        rates.append((len(text) / MEGABYTE / time_of(redactor.redact, [text]), literal.decode()))
    return min(rates)


def read_lines(folder: Path) -> list[bytes]:
    return [line for path in sorted(folder.rglob("*.jsonl")) for line in path.read_bytes().splitlines()]


def with_secrets(lines: Iterable[bytes]) -> list[bytes]:
    return [line.replace(b'"type"', b'"note":"TOKEN=ghp_' + b"a1B2c3D4" * 4 + b'abcd","type"', 1) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    folder = parser.parse_args().folder
    lines = read_lines(folder) if folder else made_up_lines()
    redactor = Redactor.default()
    image = base64.b64encode(random.Random(1).randbytes(300_000))
    measure("line by line", lines, redactor)
    measure("pieces of 256 KiB", pieces_of(lines), redactor)
    measure("base64, lines of 400 kB", [b'{"type":"image","data":"' + image + b'"}'] * 20, redactor)
    measure("a secret in every line, pieces", pieces_of(with_secrets(lines)), redactor)
    rate, literal = worst(redactor)
    print(f"slowest text of one literal: {rate:.2f} MB/s ({literal!r})")


if __name__ == "__main__":
    main()
