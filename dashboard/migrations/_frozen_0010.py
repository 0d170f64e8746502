"""Prompt shapes in stored facts, read as 0010 needs them. A frozen copy that later changes of live code leave alone."""

from collections.abc import Iterator

import msgspec
import zstandard

_LARGEST_FACTS = 1024 * 1024 * 1024  # a forged frame must not claim more
_SHAPE = 16  # the place of `shape` in a stored fact: the client's name for the prompt shape, and its digest


def list_shape_digests(facts: bytes | memoryview) -> Iterator[str]:
    """Yield the digests of the prompt shapes in the packed facts of one segment."""
    packed = zstandard.ZstdDecompressor().decompress(bytes(facts), max_output_size=_LARGEST_FACTS)
    for fact in msgspec.msgpack.decode(packed, type=list[list[object]]):
        shape = fact[_SHAPE] if len(fact) > _SHAPE else None
        if isinstance(shape, list) and shape:
            yield str(shape[1])
