"""Threads of a transcript and their calls, straight from its entries: for benchmarks and tests.

The dashboard builds both from stored facts (dashboard.ingest.picture.drawing).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from compaction.cache.breaks import DEFAULT_POLICY
from compaction.cache.calls import CacheCall, CachePolicy
from compaction.cache.fact_calls import collect_fact_calls
from compaction.cache.fact_order import split_facts
from compaction.cache.fact_reading import print_shape, read_fact
from compaction.cache.fingerprint import Digest, Fingerprint
from compaction.transcripts.entries import Entry
from compaction.transcripts.payloads import ApiRequestShape


@dataclass(frozen=True, slots=True)
class Thread:
    """The main conversation (`agent_id` None) or one sub-agent."""

    agent_id: str | None
    entries: tuple[Entry, ...]


def split_threads(entries: Iterable[Entry]) -> tuple[Thread, ...]:
    """Return the main thread first, then sub-agents in order of appearance; old sidechains are named after the uuid
    they start at."""
    threads: dict[str | None, list[Entry]] = {None: []}
    roots: dict[str, str] = {}
    for entry in entries:
        name = entry.agent_id if entry.is_sidechain else None
        if entry.is_sidechain and name is None:
            name = roots.get(entry.parent_uuid or "", entry.uuid or "sidechain")
            roots[entry.uuid or ""] = name
        threads.setdefault(name, []).append(entry)
    return tuple(Thread(name, tuple(found)) for name, found in threads.items() if found or name is None)


def read_session_calls(
    entries: Iterable[Entry], policy: CachePolicy = DEFAULT_POLICY, *, digest: Digest | None = None
) -> dict[str | None, tuple[CacheCall, ...]]:
    """Return the calls of every thread by the sub-agent's id; None is the main conversation. Requests are
    fingerprinted only when a digest is given."""
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
