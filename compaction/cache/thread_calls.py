"""The calls of a transcript as break detection wants them, straight from its entries in the order of the file."""

from collections.abc import Iterable

from compaction.cache.breaks import DEFAULT_POLICY
from compaction.cache.calls import CacheCall, CachePolicy
from compaction.prompt.fingerprint import Digest, Fingerprint
from compaction.timeline.calls import collect_fact_calls
from compaction.timeline.order import split_facts
from compaction.timeline.read_entries import print_shape, read_fact
from compaction.transcripts.entries import Entry
from compaction.transcripts.payloads import ApiRequestShape


def read_session_calls(
    entries: Iterable[Entry], policy: CachePolicy = DEFAULT_POLICY, *, digest: Digest | None = None
) -> dict[str | None, tuple[CacheCall, ...]]:
    """The calls of every thread, by the sub-agent's id; None is the main conversation. Requests are fingerprinted only
    when a digest is given."""
    lines = tuple(entries)
    shapes = None if digest is None else _print_shapes(lines, digest)
    threads = split_facts(read_fact(entry, digest) for entry in lines)
    return {
        agent_id: tuple(call.cache_call for call in collect_fact_calls(facts, policy, shapes=shapes))
        for agent_id, facts in threads.items()
    }


def _print_shapes(entries: Iterable[Entry], digest: Digest) -> dict[str, Fingerprint]:
    shapes = {}
    for entry in entries:
        printed = print_shape(entry, digest)
        if printed is not None and isinstance(entry.payload, ApiRequestShape):
            shapes[entry.payload.shape_hash] = printed[1]
    return shapes
