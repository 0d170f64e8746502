"""Real-looking transcripts, damaged: values swapped between lines and kinds, bytes lost, doubled and torn apart.

Everything follows from a seed, so that a failed example can be made again.
"""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

# What a value may have become: of another kind, too large, too long, with characters that no column takes.
_ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**53, 2**63, 10**30, 1e308, 0.5, "", "\x00", "a\x00b", "\ud800", "é" * 300, "x" * 5_000),
    *([], {}, [None], [[]], {"": ""}, "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-13-01T00:00:00Z"),
    *("2026-05-01T10:00:00", "2026-05-01T10:00:00+14:00", {"type": "text"}, [{"type": "tool_use"}], "assistant"),
)


def make_damaged(lines: Sequence[bytes], seed: int, *, most: int = 12) -> bytes:
    """Some of the lines in some order, most of them damaged in one or two ways."""
    random = Random(seed)
    picked = [random.choice(lines).rstrip(b"\r\n") for _ in range(random.randint(1, most))]
    for place in range(len(picked)):
        for _ in range(random.choice((0, 1, 1, 2))):
            picked[place] = random.choice(_DAMAGES)(picked[place], picked, random)
    return b"".join(line + random.choice(_ENDINGS) for line in picked)


_ENDINGS = (b"\n",) * 12 + (b"\r\n", b"\n\n", b"", b" ", b"\x00\n", b"\n\xef\xbb\xbf", b"\r")


def _exchange_value(line: bytes, lines: Sequence[bytes], random: Random) -> bytes:
    """A value gives way to an odd one, or to any value of another line."""
    fields = _read_object(line)
    holder, key = _pick_place(fields, random)
    if holder is None:
        return line
    holder[key] = random.choice(_ODD) if random.random() < 0.6 else _pick_value(random.choice(lines), random)
    return json.dumps(fields, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")


def _rename_key(line: bytes, _lines: Sequence[bytes], random: Random) -> bytes:
    fields = _read_object(line)
    holder, key = _pick_place(fields, random)
    if isinstance(holder, dict):
        holder[random.choice(["", "type", "uuid", "message", "id", f"{key}x"])] = holder.pop(key)
    return json.dumps(fields).encode()


def _double_key(line: bytes, lines: Sequence[bytes], random: Random) -> bytes:
    other = json.dumps(_pick_value(random.choice(lines), random)).encode()
    name = random.choice([b"type", b"uuid", b"parentUuid", b"sessionId", b"message", b"timestamp"])
    return b'{"%b":%b,' % (name, other) + line.removeprefix(b"{")


def _cut(line: bytes, _lines: Sequence[bytes], random: Random) -> bytes:
    return line[: random.randint(0, len(line))]


def _lose_start(line: bytes, _lines: Sequence[bytes], random: Random) -> bytes:
    return line[random.randint(0, len(line)) :]


def _splice(line: bytes, lines: Sequence[bytes], random: Random) -> bytes:
    """As when two writers were at it at once."""
    other = random.choice(lines)
    return line[: random.randint(0, len(line))] + other[random.randint(0, len(other)) :]


def _overwrite(line: bytes, _lines: Sequence[bytes], random: Random) -> bytes:
    place = random.randint(0, len(line))
    fresh = random.choice([random.randbytes(3), b"\x00" * 40, b'"', b"\\", b"}", b"{", b"\xf0\x9f", b"[" * 200, b"NaN"])
    return line[:place] + fresh + line[place + random.choice((0, len(fresh))) :]


_Damage = Callable[[bytes, Sequence[bytes], Random], bytes]
_DAMAGES: tuple[_Damage, ...] = (
    *(_exchange_value,) * 6,
    *(_rename_key, _double_key, _cut, _lose_start, _splice, _overwrite),
)


def _read_object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _pick_place(value: Any, random: Random) -> tuple[Any, Any]:
    """Anywhere below: what holds a value, and its key there. The deeper the rarer."""
    holder: Any = None
    key: Any = None
    while isinstance(value, dict | list) and value:
        holder, key = value, random.choice(list(value) if isinstance(value, dict) else range(len(value)))
        value = holder[key]
        if random.random() < 0.4:
            break
    return holder, key


def _pick_value(line: bytes, random: Random) -> Any:
    holder, key = _pick_place(_read_object(line), random)
    return None if holder is None else holder[key]
