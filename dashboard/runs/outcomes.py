"""Results of runs read back: the compacted conversation with any revision's summary in it, and what became of what."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from compaction.compactors.outcome import EntryFate, EntryRecord
from compaction.context.tokens import estimate_tokens
from compaction.transcripts.entries import Entry, Message, OtherBlock, TextBlock
from compaction.transcripts.flatten import COMPACTION_TYPE
from compaction.transcripts.transcript import read_transcript
from dashboard.ingest.segments import expand
from dashboard.models import CompactionRun, RunRevision
from dashboard.runs.choices import RunRefused


@dataclass(frozen=True)
class StoredItem:
    """One thing that was considered for coming back. `entry_uuid` is its line in the outcome, where it has one."""

    kind: str
    name: str
    tokens: int
    state: str
    reason: str
    code: str
    entry_uuid: str | None


@dataclass(frozen=True)
class ClearedResult:
    tool_use_id: str
    tool: str
    tokens: int


@dataclass(frozen=True, kw_only=True)
class StoredOutcome:
    """`entries` is all the model sees from here on. `revision` is None for a micro-compaction, which has no summary."""

    run: CompactionRun
    revision: RunRevision | None
    entries: tuple[Entry, ...]
    boundary_uuid: str
    summary_uuid: str | None = None
    fates: tuple[EntryRecord, ...] = ()
    restored: tuple[StoredItem, ...] = ()
    cleared: tuple[ClearedResult, ...] = ()
    cleared_attachment_uuids: tuple[str, ...] = ()
    display_messages: tuple[str, ...] = ()
    audit: Mapping[str, Any] | None = None
    retained_percent: Decimal | None = None
    native_block: Mapping[str, object] | None = None

    @property
    def boundary(self) -> Entry:
        return next(entry for entry in self.entries if entry.uuid == self.boundary_uuid)

    @property
    def summary_entry(self) -> Entry | None:
        return next((entry for entry in self.entries if self.summary_uuid and entry.uuid == self.summary_uuid), None)

    @property
    def expected_tokens(self) -> int:
        """The context of the next call: what stands here, and system and tools."""
        return estimate_tokens(self.entries) + self.run.prefix_tokens

    @property
    def signed_entries(self) -> tuple[Entry, ...]:
        """For requests to the API that compacted: its block as it came, in the place of the words in it. They stand
        where the words were edited, since its signature holds for its own."""
        block = self.native_block
        if block is None or self.revision is None or self.revision.number > 1:
            return self.entries
        said = Message("assistant", (OtherBlock(COMPACTION_TYPE, block),))
        return tuple(
            entry.changed(type="assistant", message=said) if entry.uuid == self.summary_uuid else entry
            for entry in self.entries
        )

    def list_uuids(self, fate: EntryFate) -> tuple[str, ...]:
        return tuple(each.uuid for each in self.fates if each.fate is fate)


def read_outcome(run: CompactionRun, revision_number: int | None = None) -> StoredOutcome:
    """With this revision's summary in place, the newest when none is named. Raises RunRefused where there is none."""
    if run.outcome is None or run.details is None:
        raise RunRefused("no_result", "This run has no result.")
    details: dict[str, Any] = json.loads(expand(run.details))
    entries = read_transcript(expand(run.outcome)).entries
    revision = _find_revision(run, revision_number) if details.get("summary_uuid") else None
    if revision is not None and revision.number > 1:
        first = run.revisions.get(number=1)
        entries = replace_summary(entries, details["summary_uuid"], first.text, revision.text)
    return StoredOutcome(
        run=run,
        revision=revision,
        entries=tuple(entries),
        boundary_uuid=details["boundary_uuid"],
        summary_uuid=details.get("summary_uuid"),
        fates=tuple(EntryRecord(uuid, EntryFate(fate), tokens) for uuid, fate, tokens in details.get("fates", ())),
        restored=tuple(_read_item(item) for item in details.get("restored", ())),
        cleared=tuple(ClearedResult(*each) for each in details.get("cleared", ())),
        cleared_attachment_uuids=tuple(details.get("cleared_attachments", ())),
        display_messages=tuple(details.get("display_messages", ())),
        audit=revision.audit if revision else details.get("audit", details.get("losses")),
        retained_percent=_read_retained(revision, details),
        native_block=details.get("native_block"),
    )


def _find_revision(run: CompactionRun, number: int | None) -> RunRevision:
    revisions = run.revisions.order_by("-number")
    found = revisions.first() if number is None else revisions.filter(number=number).first()
    if found is None:
        raise RunRefused("no_such_revision", f"This run has no revision {number} of its summary.")
    return found


def _read_item(item: Mapping[str, Any]) -> StoredItem:
    plain = {key: item[key] for key in ("kind", "name", "tokens", "state", "reason", "code")}
    return StoredItem(**plain, entry_uuid=item["entry"])


def _read_retained(revision: RunRevision | None, details: Mapping[str, Any]) -> Decimal | None:
    if revision is not None:
        return revision.retained_percent
    stored = details.get("retained_percent", details.get("loss_score"))  # as earlier versions called it
    return None if stored is None else Decimal(stored)


def replace_summary(entries: Sequence[Entry], summary_uuid: str, old: str, new: str) -> tuple[Entry, ...]:
    """The same lines, the summary's own words changed; what stands around them in its message stays."""
    return tuple(_reword(entry, old, new) if entry.uuid == summary_uuid else entry for entry in entries)


def _reword(entry: Entry, old: str, new: str) -> Entry:
    if entry.message is None:
        return entry
    blocks = tuple(
        TextBlock(block.text.replace(old, new, 1)) if isinstance(block, TextBlock) else block
        for block in entry.message.content
    )
    message: Message = replace(entry.message, content=blocks)
    return entry.changed(message=message)
