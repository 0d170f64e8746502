"""One compaction with everything that is known of it: summary, restored attachments, every message, audit, chain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from compaction.compactors.summary.answer import split_sections
from compaction.compactors.summary.prompt import list_sections
from compaction.ports import Variant
from compaction.transcripts.entries import Entry, TextBlock
from compaction.transcripts.payloads import OlderSummary
from dashboard import access
from dashboard.access import Actor
from dashboard.ingest.audit_rows import AUDIT_VERSION, StoredPart, parse_audit
from dashboard.ingest.stored_entries import read_thread
from dashboard.models import AgentSession, ApiCall, CompactionKind, ObservedCompaction
from dashboard.pages.calls_around import read_calls_around
from dashboard.pages.compaction_messages import Fate, MessageFate, count_fates, split_at_boundary, trace_messages
from dashboard.pages.compaction_rows import CompactionRow, find_scale, make_row
from dashboard.pages.content_state import ContentState, find_content_state, find_stored_state
from dashboard.pages.failed_compaction import FailedCompaction, describe_failed
from dashboard.pages.ledger import name_session
from dashboard.pages.restored_things import RestoredThings, read_restored
from dashboard.pages.thread_names import name_by_id, name_threads
from dashboard.runs.missing_lines import describe_gaps
from dashboard.words import format_lost_count, format_size, title_compaction

MESSAGES_SHOWN = 50
SAVED_NOTHING = (
    "The summary and the restored attachments take as much room as the messages they replaced, or more. "
    "While a conversation is this short, continue without compacting, or start a new session."
)


@dataclass(frozen=True)
class SummaryView:
    """A summary taken apart; `opening` is what stands before the first section, or all of one without any."""

    opening: str
    sections: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]


@dataclass(frozen=True)
class LostView:
    """One thing that is not found after the compaction. `page`: the page of the messages that lists its message."""

    part: str
    label: str
    text: str
    entry: str
    weight: float | None
    page: int | None


@dataclass(frozen=True)
class AuditView:
    """What a compaction retained, by parts, and what it lost; the lost texts are content."""

    version: int
    parts: tuple[StoredPart, ...]
    lost_count: int
    lost: tuple[LostView, ...]

    @property
    def groups(self) -> tuple[tuple[str, tuple[LostView, ...]], ...]:
        """What was lost by part, in the order of the most important of each."""
        by_label: dict[str, list[LostView]] = {}
        for each in self.lost:
            by_label.setdefault(each.label, []).append(each)
        return tuple((label, tuple(lost)) for label, lost in by_label.items())

    @property
    def entries(self) -> frozenset[str]:
        """The messages that what was lost is cited from."""
        return frozenset(each.entry for each in self.lost if each.entry)

    @property
    def is_outdated(self) -> bool:
        """Whether later versions audit by other rules, so that figures cannot be compared."""
        return self.version < AUDIT_VERSION


@dataclass(frozen=True)
class CallBeside:
    """The call of the conversation before or after."""

    number: int
    at: datetime | None
    model: str
    read_tokens: int
    written_tokens: int
    context_tokens: int
    cost_usd: Decimal | None


@dataclass(frozen=True)
class MessageList:
    """One stretch of the messages, and what became of all of them.

    `lost_entries`: messages from which something was lost; `is_lost_only`: the rows are only these.
    """

    rows: tuple[MessageFate, ...]
    total: int
    first: int
    previous: int | None
    next: int | None
    fates: tuple[tuple[Fate, int, int], ...]
    lost_entries: frozenset[str] = frozenset()
    is_lost_only: bool = False


@dataclass(frozen=True)
class CompactionPage:
    """All of one compaction. What needs content is None where it is not stored or must not be shown."""

    row: CompactionRow
    entry_uuid: str  # of the boundary; empty where it cannot be read in the transcript
    session: AgentSession
    content_state: ContentState
    summary: SummaryView | None
    restored: RestoredThings
    messages: MessageList | None
    audit: AuditView | None
    previous_id: int | None
    next_id: int | None
    before: CallBeside | None
    after: CallBeside | None
    failed: FailedCompaction | None
    may_run: bool
    gap_count: int = 0  # places where lines of the conversation before it are missing

    @property
    def title(self) -> str:
        """Return the finding as a sentence: Compacted 168k to 36k: 3 things lost."""
        before, after = self.row.before_tokens, self.row.after_tokens
        if self.row.has_failed:
            return f"Compaction failed at {format_size(before)}"
        if not self.row.is_full:
            return title_compaction(before, after, verb="Cleared old tool results:")
        lost_count = self.audit.lost_count if self.audit else None
        return title_compaction(before, after, ending=f": {format_lost_count(lost_count)}")

    @property
    def advice(self) -> str:
        """What to do about a compaction that saved nothing; empty for any other."""
        return SAVED_NOTHING if self.row.is_full and self.row.saves_nothing else ""

    @property
    def missing_lines(self) -> str:
        """Empty where no line is missing."""
        return describe_gaps(self.gap_count)

    @property
    def shows_content(self) -> bool:
        return self.content_state is ContentState.SHOWN

    @property
    def stored_state(self) -> ContentState:
        return find_stored_state(self.session)

    @property
    def transcript_of(self) -> int | None:
        """The session that findings link into, for those who may read it."""
        return self.session.pk if self.shows_content else None


def read_compaction(
    actor: Actor, compaction: ObservedCompaction, *, first_message: int = 1, is_lost_only: bool = False
) -> CompactionPage:
    """`compaction` with its session and team. The conversation is unpacked once."""
    session = compaction.session
    state = find_content_state(actor, session)
    is_shown = state is ContentState.SHOWN
    reads_content = state is not ContentState.NOT_GRANTED
    entries = read_thread(session, compaction.agent_id).entries if session.has_content else ()
    sides = split_at_boundary(entries, compaction.entry_uuid)
    traced = trace_messages(sides) if sides and compaction.kind == CompactionKind.FULL else None
    audit = build_audit_view(compaction.audit, traced or (), shows_texts=reads_content)
    threads = name_threads(session.pk, reads_content=reads_content)
    previous_id, next_id = _find_neighbours(compaction)
    around = read_calls_around([compaction.pk])[compaction.pk]
    row = make_row(
        compaction,
        session_name=name_session(session, reads_content=reads_content),
        thread=threads.get(compaction.agent_id) or name_by_id(compaction.agent_id),
        scale_tokens=find_scale([compaction]),
    )
    return CompactionPage(
        row=row,
        entry_uuid=compaction.entry_uuid if is_shown and sides else "",
        session=session,
        content_state=state,
        summary=_read_summary(entries, compaction) if is_shown else None,
        restored=read_restored(compaction, entries if is_shown else (), sides),
        messages=None
        if traced is None
        else cut_messages(traced, first_message, shows_words=is_shown, audit=audit, is_lost_only=is_lost_only),
        audit=audit,
        previous_id=previous_id,
        next_id=next_id,
        before=_make_beside(around.before),
        after=_make_beside(around.after),
        failed=describe_failed(compaction, around.after, reads_content=reads_content),
        may_run=access.may_run(actor, session),
        gap_count=sides.gap_count if sides else 0,
    )


def _read_summary(entries: Sequence[Entry], compaction: ObservedCompaction) -> SummaryView | None:
    wanted = {compaction.summary_uuid, compaction.entry_uuid} - {""}
    for entry in entries:
        if entry.uuid in wanted and (text := _find_summary_text(entry)):
            return take_apart(text)
    return None


def _find_summary_text(entry: Entry) -> str:
    if isinstance(entry.payload, OlderSummary):
        return entry.payload.text
    blocks = entry.message.content if entry.message and entry.is_compact_summary else ()
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


def take_apart(text: str) -> SummaryView:
    """By the nine sections of the variant that fits best."""
    found = {variant: split_sections(text, variant) for variant in (Variant.FULL, Variant.UP_TO)}
    variant = max(found, key=lambda each: len(found[each]))
    sections = found[variant]
    start = min((text.index(body) for body in sections.values()), default=len(text))
    missing = tuple(name for name in list_sections(variant) if name not in sections)
    bodies = tuple((name, _drop_heading(body)) for name, body in sections.items())
    return SummaryView(text[:start].strip(), bodies, missing if sections else ())


def _drop_heading(body: str) -> str:
    """What stands behind the colon of the heading, and the text below it."""
    heading, _, rest = body.partition("\n")
    said = (heading.partition(":")[2].strip(" *"), rest.strip())
    return "\n".join(part for part in said if part) or heading


def cut_messages(
    messages: Sequence[MessageFate],
    first: int,
    *,
    shows_words: bool,
    audit: AuditView | None = None,
    is_lost_only: bool = False,
) -> MessageList:
    """Return the stretch that begins with this number, or all messages from which something was lost. Without the
    right to words only structure is left."""
    cited = audit.entries if audit and shows_words else frozenset()
    lost_entries = cited & {message.entry_uuid for message in messages}
    if is_lost_only and lost_entries:
        lost = tuple(message for message in messages if message.entry_uuid in lost_entries)
        fates = count_fates(messages)
        return MessageList(lost, len(messages), 1, None, None, fates, lost_entries, is_lost_only=True)
    start = max(1, min(first, len(messages))) - 1
    rows = tuple(messages[start : start + MESSAGES_SHOWN])
    if not shows_words:
        rows = tuple(replace(message, entry_uuid="", words="") for message in rows)
    return MessageList(
        rows=rows,
        total=len(messages),
        first=start + 1,
        previous=max(1, start + 1 - MESSAGES_SHOWN) if start else None,
        next=start + 1 + MESSAGES_SHOWN if start + MESSAGES_SHOWN < len(messages) else None,
        fates=count_fates(messages),
        lost_entries=lost_entries,
    )


def build_audit_view(
    stored: Mapping[str, Any] | None, traced: Sequence[MessageFate], *, shows_texts: bool
) -> AuditView | None:
    """Return a stored audit with the page that lists each cited message; None: nothing was compared."""
    audit = parse_audit(stored)
    if audit is None:
        return None
    numbers = {message.entry_uuid: message.number for message in traced}
    lost = (
        LostView(each.part, each.label, each.text, each.entry, each.weight, _find_page(numbers.get(each.entry)))
        for each in audit.lost
    )
    return AuditView(audit.version, audit.parts, audit.lost_count, tuple(lost) if shows_texts else ())


def _find_page(number: int | None) -> int | None:
    return None if number is None else (number - 1) // MESSAGES_SHOWN * MESSAGES_SHOWN + 1


def _find_neighbours(compaction: ObservedCompaction) -> tuple[int | None, int | None]:
    """The full compactions before and after it in its thread."""
    if compaction.kind != CompactionKind.FULL:
        return None, None
    numbers = (compaction.chain_number - 1, compaction.chain_number + 1)
    found = dict(
        ObservedCompaction.objects.filter(
            session_id=compaction.session_id,
            agent_id=compaction.agent_id,
            kind=CompactionKind.FULL,
            chain_number__in=numbers,
        ).values_list("chain_number", "pk")
    )
    return found.get(numbers[0]), found.get(numbers[1])


def _make_beside(call: ApiCall | None) -> CallBeside | None:
    if call is None:
        return None
    return CallBeside(
        number=call.number,
        at=call.at,
        model=call.model,
        read_tokens=call.read_tokens,
        written_tokens=call.write_5m_tokens + call.write_1h_tokens,
        context_tokens=call.context_tokens,
        cost_usd=call.cost_usd,
    )
