"""The prompt cache as the Messages API documents it: written at markers, found again only where every byte is the same.

Tools, then system, then messages; a marker looks back over twenty blocks; a read keeps the entry alive.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

LOOKBACK_BLOCKS = 20
SECONDS_TO_LIVE = {"5m": 300, "1h": 3600}
BYTES_PER_TOKEN = 4
# What else belongs to the key of a block, by the level at which a change of it breaks the cache.
_SYSTEM_KEYS = ("speed",)
_MESSAGE_KEYS = ("tool_choice", "thinking", "output_config")
_NOT_PART_OF_IT = "x-anthropic-billing-header"  # how a client names itself; it changes with every run


@dataclass(frozen=True)
class CountedPrompt:
    """A prompt's tokens by bucket."""

    input_tokens: int
    read_tokens: int
    write_5m_tokens: int
    write_1h_tokens: int

    def to_usage(self, output_tokens: int) -> dict[str, object]:
        """The `usage` of a response."""
        return {
            "input_tokens": self.input_tokens,
            "cache_creation_input_tokens": self.write_5m_tokens + self.write_1h_tokens,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.write_5m_tokens,
                "ephemeral_1h_input_tokens": self.write_1h_tokens,
            },
            "cache_read_input_tokens": self.read_tokens,
            "output_tokens": output_tokens,
            "service_tier": "standard",
        }


@dataclass(frozen=True)
class _Block:
    """A place in the prompt: the hash of everything up to its end, the tokens up to there, and its marker."""

    digest: str
    end_tokens: int
    lifetime: str | None


@dataclass
class PromptCache:
    """What was written so far. `age(seconds)` lets time pass."""

    _alive_until: dict[str, tuple[float, str]] = field(default_factory=dict)
    _shift_seconds: float = 0.0

    def age(self, seconds: float) -> None:
        """As if so many seconds had passed."""
        self._shift_seconds += seconds

    def take(self, body: Mapping[str, object]) -> CountedPrompt:
        """Reads and writes as one request would, and tells its tokens."""
        now = time.monotonic() + self._shift_seconds
        blocks = list(_list_blocks(body))
        marked = [place for place, block in enumerate(blocks) if block.lifetime is not None]
        hit = max((self._look_back(blocks, place, now) for place in marked), default=-1)
        if hit >= 0:
            lifetime = self._alive_until[blocks[hit].digest][1]
            self._alive_until[blocks[hit].digest] = (now + SECONDS_TO_LIVE[lifetime], lifetime)
        read = blocks[hit].end_tokens if hit >= 0 else 0
        written = {"5m": 0, "1h": 0}
        reached = read
        for place in marked:
            block = blocks[place]
            lifetime = block.lifetime or "5m"
            if place > hit:
                self._alive_until[block.digest] = (now + SECONDS_TO_LIVE[lifetime], lifetime)
                written[lifetime] += block.end_tokens - reached
                reached = block.end_tokens
        total = blocks[-1].end_tokens if blocks else 0
        return CountedPrompt(total - reached, read, written["5m"], written["1h"])

    def _look_back(self, blocks: list[_Block], place: int, now: float) -> int:
        for earlier in range(place, max(-1, place - LOOKBACK_BLOCKS), -1):
            until, _ = self._alive_until.get(blocks[earlier].digest, (0.0, ""))
            if until > now:
                return earlier
        return -1


def count_prompt_tokens(body: Mapping[str, object]) -> int:
    """All of it, by the same measure."""
    return max((block.end_tokens for block in _list_blocks(body)), default=0)


def _list_blocks(body: Mapping[str, object]) -> Iterator[_Block]:
    digest, end_bytes = hashlib.sha256(_dump([body.get("model")])), 0
    pieces = list(_list_pieces(body))
    for place, (level, head, piece) in enumerate(pieces):
        if place == 0 or pieces[place - 1][0] != level:
            keys = {"system": _SYSTEM_KEYS, "messages": _MESSAGE_KEYS}.get(level, ())
            digest.update(_dump([level, *(body.get(key) for key in keys)]))
        marker = piece.get("cache_control")
        if place == len(pieces) - 1:
            marker = marker or body.get("cache_control")
        bare = _dump([head, {key: value for key, value in piece.items() if key != "cache_control"}])
        digest.update(bare)
        end_bytes += len(bare)
        lifetime = str(marker.get("ttl", "5m")) if isinstance(marker, Mapping) else None
        yield _Block(digest.hexdigest(), -(-end_bytes // BYTES_PER_TOKEN), lifetime)


def _list_pieces(body: Mapping[str, object]) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    """(level, what stands before the block, block) in the order of the prefix."""
    for tool in _as_blocks(body.get("tools")):
        yield "tools", "", tool
    for block in _as_blocks(body.get("system")):
        if not str(block.get("text")).startswith(_NOT_PART_OF_IT):
            yield "system", "", block
    for message in _as_blocks(body.get("messages")):
        for number, block in enumerate(_as_blocks(message.get("content"))):
            yield "messages", str(message.get("role")) if number == 0 else "", block


def _as_blocks(value: object) -> list[Mapping[str, object]]:
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _dump(value: object) -> bytes:
    # Not sorted: another order of keys is another prefix.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
