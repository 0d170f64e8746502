"""Observations that earlier versions stored: every field keeps its place, every value its spelling."""

import gzip
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from compaction.timeline.observations import (
    ClientReport,
    CompactionRecord,
    FailedCall,
    LineKind,
    Observation,
    RecordedRequest,
    Response,
    pack_observations,
    unpack_observations,
)
from dashboard.ingest.segments import expand

DATABASES = sorted(Path(__file__).parent.glob("*.sqlite3.gz"))

# As stored today. A new field goes behind the last; none of these is renamed in place, moved or taken away.
FIELDS: dict[type[msgspec.Struct], tuple[str, ...]] = {
    Observation: (
        "id", "kind", "type", "parent", "at", "agent_id", "is_sidechain", "has_user_content", "session_id", "version",
        "cwd", "branch", "size_bytes", "response", "request", "compaction", "shape", "tokens", "text", "name",
        "cost_usd", "has_content", "is_redacted", "client_report", "failed_call", "reading_version", "permission_mode",
    ),
    Response: (
        "call_id", "usage", "model", "stop_reason", "miss_reason", "request_id", "written_characters", "has_thinking",
        "request_ref", "requested_ttl", "source", "duration_seconds", "ttft_seconds", "query_source", "client_reasons",
        "is_output_estimated", "added", "cleared_tokens", "block_count", "tool_use_count", "searches_tools",
    ),
    RecordedRequest: (
        "id", "query_source", "shape", "model", "base", "keep", "tail", "markers", "settings", "is_opaque",
        "image_count", "has_citations", "starts_turn",
    ),
    CompactionRecord: (
        "trigger", "before_tokens", "after_tokens", "saved_tokens", "duration_seconds", "summary_tokens", "kept_from",
        "kept_to", "cleared_count",
    ),
    FailedCall: (
        "status", "reason", "request_id", "model", "duration_seconds", "attempt", "counted_tokens", "source", "added",
    ),
    ClientReport: (
        "event", "detail", "prompt_id", "model", "context_tokens", "window_tokens", "cache_expires_at",
        "is_cache_expired", "rebuild_usd", "reasons", "rate_limits",
    ),
}  # fmt: skip
KINDS = {
    "answer", "prompt", "result", "command", "summary", "boundary", "micro", "deletion", "older summary", "request",
    "shape", "attachment", "restart", "title", "cost", "turn end", "failure", "count", "other", "agent", "problem",
    "compaction report", "prompt report", "counter", "hook", "status",
}  # fmt: skip


@pytest.mark.parametrize("struct", FIELDS, ids=lambda struct: struct.__name__)
def test_fields_keep_their_places(struct: type[msgspec.Struct]) -> None:
    pinned = FIELDS[struct]
    assert struct.__struct_fields__[: len(pinned)] == pinned


def test_kinds_keep_their_values() -> None:
    assert {kind.value for kind in LineKind} >= KINDS


def _read_stored_facts(path: Path, folder: Path) -> list[bytes]:
    database = folder / "old.sqlite3"
    database.write_bytes(gzip.decompress(path.read_bytes()))
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT facts FROM dashboard_entrysegment ORDER BY id").fetchall()
    return [expand(facts) for (facts,) in rows]


def _begins_with(written: object, stored: object) -> bool:
    """Whether what is written today holds what was stored: arrays may only have grown at their end, usage leaves out
    what is nothing."""
    if isinstance(stored, dict) and isinstance(written, dict):
        return {name: value for name, value in stored.items() if value} == written
    if isinstance(stored, Sequence) and not isinstance(stored, str | bytes):
        if not isinstance(written, Sequence) or len(written) < len(stored):
            return False
        return all(_begins_with(new, old) for new, old in zip(written, stored, strict=False))
    return written == stored


@pytest.mark.parametrize("path", DATABASES, ids=lambda path: path.name)
def test_stored_bytes_are_read_and_written_as_they_were(path: Path, tmp_path: Path) -> None:
    stored = _read_stored_facts(path, tmp_path)
    assert stored
    for packed in stored:
        old = msgspec.msgpack.decode(packed)
        new = msgspec.msgpack.decode(pack_observations(unpack_observations(packed)))
        assert len(old) == len(new)
        assert all(_begins_with(written, known) for written, known in zip(new, old, strict=True))
