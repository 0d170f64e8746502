"""Threads of a transcript and their calls, straight from its entries: for benchmarks and tests.

The dashboard builds both from stored observations.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from compaction.prompt.fingerprint import Digest, Fingerprint
from compaction.timeline.calls import Call, collect_calls
from compaction.timeline.order import split_by_thread
from compaction.timeline.read_entries import fingerprint_shape, read_observation
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


def read_session_calls(entries: Iterable[Entry], *, digest: Digest | None = None) -> dict[str | None, tuple[Call, ...]]:
    """Return the calls of every thread in the order of the file, by the sub-agent's id; None is the main conversation.
    Requests are fingerprinted only when a digest is given."""
    lines = tuple(entries)
    shapes = None if digest is None else _print_shapes(lines, digest)
    threads = split_by_thread(read_observation(line, digest) for line in lines)
    return {agent_id: collect_calls(found, shapes=shapes) for agent_id, found in threads.items()}


def _print_shapes(entries: Iterable[Entry], digest: Digest) -> dict[str, Fingerprint]:
    return {
        entry.payload.shape_hash: printed[1]
        for entry in entries
        if isinstance(entry.payload, ApiRequestShape) and (printed := fingerprint_shape(entry, digest)) is not None
    }
