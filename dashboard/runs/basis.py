"""What a compaction starts from: the entries of a thread as the model sees them, its size, its lines, its model."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from compaction.compactors.micro.clearing import apply_boundaries
from compaction.compactors.notes.template import DEFAULT_TEMPLATE, SessionNotes
from compaction.compactors.summary.fork_request import ParentRequest
from compaction.context.composition import BEFORE_FILE, LARGEST_PREFIX_TOKENS, PREFIX, compute_composition
from compaction.context.coverage import Coverage, compute_coverage
from compaction.context.thresholds import Thresholds, compute_thresholds
from compaction.context.tokens import ResultCache, measure_context
from compaction.llm.names import read_model_name
from compaction.timeline.observations import REPORT, LineKind
from compaction.transcripts.chain import ContextSlice, find_chain, slice_context
from compaction.transcripts.entries import Entry
from compaction.transcripts.payloads import ApiRequestShape
from dashboard.ingest.stored_entries import StoredThread, read_thread
from dashboard.models import AgentSession, FollowedFile
from dashboard.policies.in_force import find_policy
from dashboard.runs.choices import RunRefused
from dashboard.runs.fork_terms import ForkTerms
from dashboard.session_levels import find_model_in_use

MEASURED, COUNTED, ESTIMATE = "measured", "counted", "estimate"  # where a figure of tokens comes from
NOT_STORED = (
    "The content of this session is not stored, so there is nothing to compact. "
    "An admin can let the team store content; sessions that arrive after that can be compacted."
)
REMOVED = "Content that the model still sees was removed by the team's retention, so this session cannot be compacted."
_BEGINNINGS = frozenset({LineKind.BOUNDARY, LineKind.OLDER_SUMMARY})
_SAID = frozenset(
    {
        LineKind.PROMPT,
        LineKind.ANSWER,
        LineKind.RESULT,
        LineKind.COMMAND,
        LineKind.SUMMARY,
        LineKind.ATTACHMENT,
    }
)


@dataclass(frozen=True)
class Basis:
    """`entries` is the active branch of the thread, `context` the part of it that the model still sees."""

    session: AgentSession
    agent_id: str
    entries: tuple[Entry, ...]
    context: ContextSlice
    model: str
    prefix_tokens: int
    before_tokens: int
    before_origin: str
    lines: Thresholds | None
    line_tokens: int | None = None  # the auto-compact line in force
    transcript_path: str | None = None
    gap_count: int = 0  # places where lines are missing in what the model sees
    coverage: Coverage | None = None  # None where nothing was measured
    # Filled in by parent_requests, where a summary may be asked for behind the last request.
    parent: ParentRequest | None = None
    fork_terms: ForkTerms = field(default_factory=ForkTerms)
    fork_refusal: str = ""
    # Filled in by session_notes, where the session's notes are to be its summary.
    notes: SessionNotes | None = None
    notes_template: str = DEFAULT_TEMPLATE

    @property
    def last_entry_uuid(self) -> str:
        return next((entry.uuid for entry in reversed(self.entries) if entry.uuid), "")


def read_basis(session: AgentSession, agent_id: str = "", *, up_to_uuid: str = "") -> Basis:
    """The thread as it is stored now, or as it was up to an entry. Raises RunRefused where there is nothing to read."""
    if not session.has_content:
        raise RunRefused("no_content", REMOVED if session.content_removed_at else NOT_STORED)
    thread = read_thread(session, agent_id)
    if session.content_removed_at is not None and _has_gaps(thread):
        raise RunRefused("no_content", REMOVED)
    stored = thread.entries
    asked = _cut_behind(stored, up_to_uuid)
    chain = find_chain(apply_boundaries(asked))
    entries = chain.entries
    if not entries:
        raise RunRefused("thread_unknown", "Conversation not found in this session, or it has no messages.")
    context = slice_context(entries)
    model = _find_model(context, session)
    shapes = [entry for entry in stored if isinstance(entry.payload, ApiRequestShape)]
    cache = ResultCache()
    found = compute_composition(context, shapes=shapes, opening=stored, cache=cache)
    prefix_tokens = found.sum_category(PREFIX) or min(found.sum_category(BEFORE_FILE), LARGEST_PREFIX_TOKENS)
    size = measure_context(context, cache)
    before_tokens, pending_tokens = size.tokens, size.estimated_tokens
    if not size.is_measured:
        before_tokens = pending_tokens = size.tokens + prefix_tokens
    if len(asked) == len(stored) and (known := _find_stored_size(session, agent_id)):
        before_tokens, pending_tokens = known  # as the gauge has it
    lines = _draw_lines(session, model, is_main=not agent_id)
    return Basis(
        session=session,
        agent_id=agent_id,
        entries=entries,
        context=context,
        model=model,
        prefix_tokens=prefix_tokens,
        before_tokens=before_tokens,
        before_origin=ESTIMATE if pending_tokens else MEASURED,
        lines=lines,
        line_tokens=lines.auto.tokens if lines else None,
        transcript_path=_find_path(session) if not agent_id else None,
        gap_count=chain.count_gaps(context),
        coverage=compute_coverage(context, size, found),
    )


def _find_stored_size(session: AgentSession, agent_id: str) -> tuple[int, int] | None:
    """Return the stored size of a thread's context, and the estimated part of it."""
    sizes = session.threads.filter(agent_id=agent_id, context_tokens__gt=0)
    return sizes.values_list("context_tokens", "pending_tokens").first()


def _has_gaps(thread: StoredThread) -> bool:
    """Whether lines that the model still sees are gone: what is behind the last boundary must be whole."""
    seen = itertools.takewhile(lambda fact: fact.kind not in _BEGINNINGS, reversed(thread.facts))
    return any(fact.kind in _SAID and not fact.has_content and fact.type != REPORT for fact in seen)


def _cut_behind(entries: Sequence[Entry], uuid: str) -> Sequence[Entry]:
    """All up to this entry; everything where it is not there any more, or none is named."""
    place = next((index for index, entry in enumerate(entries) if uuid and entry.uuid == uuid), None)
    return entries if place is None else entries[: place + 1]


def _find_model(context: ContextSlice, session: AgentSession) -> str:
    answered = (entry.message.model for entry in reversed(context.entries) if entry.is_response and entry.message)
    return next((model for model in answered if model), session.model)


def _draw_lines(session: AgentSession, model: str, *, is_main: bool) -> Thresholds | None:
    if not model:
        return None
    in_use = find_model_in_use(session)
    if not is_main:
        in_use = replace(in_use, model=model, reported_window_tokens=None)
    elif read_model_name(model).base != read_model_name(in_use.model).base:  # else its window may have been inferred
        in_use = replace(in_use, model=model)
    return compute_thresholds(find_policy(session.team).lines_policy, in_use)


def _find_path(session: AgentSession) -> str | None:
    """Where the client can look the whole conversation up: the file it came from, if it came from this machine."""
    files = FollowedFile.objects.filter(team_id=session.team_id, path__endswith=f"/{session.external_id}.jsonl")
    return files.filter(gone_at=None).order_by("-read_at").values_list("path", flat=True).first()
