"""Runs that are done, made by the engine from what is stored of a session: for tests of what comes after."""

import json
from datetime import datetime

from compaction.compactors.extractive import ExtractiveSummarizer
from compaction.compactors.full import compact_full
from compaction.compactors.micro_idle import IdleSettings, clear_by_idle_time
from compaction.compactors.outcome import Outcome, Trigger
from compaction.compactors.partial import compact_from, compact_up_to
from compaction.compactors.restore import ContextRestorer
from compaction.compactors.run import CompactionRequest, Outside
from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import Entry
from compaction.transcripts.writer import write_entry
from dashboard.ingest.segments import compress
from dashboard.ingest.stored_entries import read_thread
from dashboard.models import AgentSession, CompactionRun, RunKind, RunRevision, RunState, SummarizerName


def finish_run(session: AgentSession, kind: RunKind, *, now: datetime, pivot_uuid: str = "") -> CompactionRun:
    """As the worker would leave it."""
    entries = follow_chain(read_thread(session).entries)
    run = CompactionRun(
        team=session.team,
        session=session,
        kind=kind,
        summarizer=SummarizerName.NONE if kind.is_micro else SummarizerName.EXTRACTIVE,
        pivot_uuid=pivot_uuid,
        source="page",
        state=RunState.DONE,
        finished_at=now,
    )
    if kind.is_micro:
        _clear(run, entries, now)
        run.save()
        return run
    outcome = _compact(entries, kind, pivot_uuid, now)
    fates = [[item.uuid, item.fate.value, item.tokens] for item in outcome.fates]
    _keep(
        run, outcome.entries, fates=fates, summary_uuid=outcome.summary_entry.uuid, boundary_uuid=outcome.boundary.uuid
    )
    run.save()
    RunRevision.objects.create(run=run, number=1, text=outcome.summary.text)
    return run


def find_prompt(session: AgentSession, words: str) -> str:
    """The uuid of the entry that begins with these words."""
    for entry in read_thread(session).entries:
        content = entry.message.content if entry.message else ()
        if any(getattr(block, "text", "").startswith(words) for block in content):
            return entry.uuid or ""
    raise LookupError(words)


def _compact(entries: tuple[Entry, ...], kind: RunKind, pivot_uuid: str, now: datetime) -> Outcome:
    request = CompactionRequest(trigger=Trigger.MANUAL, now=now)
    outside = Outside(ExtractiveSummarizer(), restore=ContextRestorer())
    if kind is RunKind.FULL:
        return compact_full(entries, request, outside)
    partial = compact_from if kind is RunKind.FROM else compact_up_to
    return partial(entries, pivot_uuid, request, outside)


def _clear(run: CompactionRun, entries: tuple[Entry, ...], now: datetime) -> None:
    seen = slice_context(entries).entries
    settings = IdleSettings(gap_seconds=0, kept_results=2)
    outcome = clear_by_idle_time(seen, now=now, cache_ttl_seconds=0, settings=settings)
    assert outcome is not None
    cleared = [[tool_id, "", 0] for tool_id in outcome.cleared_tool_ids]
    _keep(run, (*outcome.entries, outcome.boundary), cleared=cleared, boundary_uuid=outcome.boundary.uuid)


def _keep(run: CompactionRun, entries: tuple[Entry, ...], **details: object) -> None:
    run.outcome = compress(b"".join(map(write_entry, entries)))
    run.details = compress(json.dumps(details).encode())
