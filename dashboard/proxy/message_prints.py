"""Fingerprints of long requests at the price of what is new in them. No Django here.

A client sends its whole conversation with every call. A message whose bytes were seen before has the print it had.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from compaction.prompt.fingerprint import Digest, Fingerprint, fingerprint_request
from compaction.prompt.request import Fields, Marker, PromptMessage, PromptRequest, read_request
from compaction.transcripts.reader import load_json

MOST_REMEMBERED_BYTES = 32 * 1024 * 1024
FEWEST_MESSAGES = 8  # below it looking up costs as much as it saves
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
# These blocks count for the whole request, not for their message alone.
_TELLING = b'"cache_edits"'


@dataclass(frozen=True, slots=True)
class KnownMessage:
    """One message as it was printed alone: its markers stand as if it were the first."""

    message: PromptMessage
    prints: Fingerprint


@dataclass(frozen=True, slots=True)
class SpeltRequest:
    """A body without its messages, and the whole request as the cache sees it."""

    body: Fields
    request: PromptRequest
    prints: Fingerprint


class MessagePrints:
    """Remembers messages by their bytes; `key` is the team's, as prints depend on it."""

    def __init__(self, *, most_bytes: int = MOST_REMEMBERED_BYTES) -> None:
        self._most_bytes = most_bytes
        self._known: OrderedDict[tuple[bytes, bytes], KnownMessage] = OrderedDict()
        self._known_bytes = 0

    def read(self, data: bytes, digest: Digest, *, key: bytes, betas: str) -> SpeltRequest | None:
        """None where it must be read as a whole: short, odd, or with blocks that concern more than their message."""
        if _TELLING in data:
            return None
        try:
            fields = _FIELDS.decode(data)
            raws = _ITEMS.decode(fields.pop("messages"))
        except (msgspec.DecodeError, KeyError, UnicodeDecodeError):
            return None
        if len(raws) < FEWEST_MESSAGES:
            return None
        messages = [self._find((key, bytes(raw)), digest) for raw in raws]
        body = {name: load_json(bytes(raw)) for name, raw in fields.items()}
        if "cache_control" in body:  # it marks the last message
            return None
        bare = read_request({**body, "messages": []}, betas=betas)
        markers = (*bare.markers, *_place_markers(messages))
        request = replace(bare, messages=tuple(each.message for each in messages), markers=markers)
        return SpeltRequest(body, request, _join(fingerprint_request(bare, digest), messages, markers))

    def _find(self, name: tuple[bytes, bytes], digest: Digest) -> KnownMessage:
        known = self._known.get(name)
        if known is not None:
            self._known.move_to_end(name)
            return known
        alone = read_request({"messages": [load_json(name[1])]})
        known = self._known[name] = KnownMessage(alone.messages[0], fingerprint_request(alone, digest))
        self._known_bytes += len(name[1])
        while self._known_bytes > self._most_bytes:
            oldest, _ = self._known.popitem(last=False)
            self._known_bytes -= len(oldest[1])
        return known


def _place_markers(messages: Sequence[KnownMessage]) -> list[Marker]:
    return [
        replace(marker, path=(marker.path[0], index, *marker.path[2:]))
        for index, each in enumerate(messages)
        for marker in each.prints.markers
    ]


def _join(bare: Fingerprint, messages: Sequence[KnownMessage], markers: tuple[Marker, ...]) -> Fingerprint:
    prints = [each.prints for each in messages]
    return replace(
        bare,
        messages=tuple(each.messages[0] for each in prints),
        message_sizes=tuple(each.message_sizes[0] for each in prints),
        message_blocks=tuple(each.message_blocks[0] for each in prints),
        system_messages=tuple(index for index, each in enumerate(prints) if each.system_messages),
        markers=markers,
        image_count=sum(each.image_count for each in prints),
        has_citations=any(each.has_citations for each in prints),
    )
