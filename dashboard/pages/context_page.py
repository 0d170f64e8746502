"""What fills a session's context now: by category, tool and file, measured against estimated, and what could go."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from compaction.compactors.micro.by_idle import DEFAULT_IDLE_SETTINGS, clear_by_idle_time, compute_idle_time
from compaction.compactors.micro.by_size import clear_by_size
from compaction.compactors.micro.clearing import MicroOutcome, apply_boundaries
from compaction.context.composition import BEFORE_FILE, Composition, compute_composition
from compaction.context.coverage import Coverage, compute_coverage
from compaction.context.tokens import MARGIN_DENOMINATOR, ResultCache, measure_context
from compaction.transcripts.chain import find_chain, slice_context
from compaction.transcripts.entries import Entry
from compaction.transcripts.payloads import ApiRequestShape
from dashboard.access import Actor
from dashboard.ingest.stored_entries import read_thread
from dashboard.models import AgentSession, ApiCall, RunKind, Thread
from dashboard.models.api_call import OF_CONVERSATION
from dashboard.pages.content_state import ContentState, find_content_state, find_stored_state
from dashboard.pages.glossary import GLOSSARY
from dashboard.pages.thread_names import name_by_id, name_threads
from dashboard.policies.in_force import find_policy
from dashboard.runs.missing_lines import describe_difference, describe_gaps, find_difference

MOST_FILES = 50
MOST_DUPLICATES = 20


@dataclass(frozen=True)
class Measured:
    """What calls tell without any content: of the last call of the thread's conversation."""

    context_tokens: int
    window_tokens: int | None
    prompt_tokens: int
    read_tokens: int
    first_prompt_tokens: int | None  # of the thread's first call: mostly system prompt and tools


@dataclass(frozen=True)
class Part:
    """A share of the context; `share` of all that was estimated."""

    category: str
    name: str
    tokens: int
    count: int
    share: float

    @property
    def is_explained(self) -> bool:
        """Whether the glossary has its category."""
        return self.category in GLOSSARY


@dataclass(frozen=True)
class Piece:
    """A part as the figure shows it: of one file, or what no file takes of it."""

    category: str
    name: str
    path: str
    tokens: int


@dataclass(frozen=True)
class Result:
    """One of the largest results; the path is content, and so is the line it stands in."""

    tool: str
    path: str
    tokens: int
    entry_uuid: str


@dataclass(frozen=True)
class Duplicate:
    """A file read again for nothing; the path is content, and so is the line of the last reading."""

    path: str
    read_count: int
    wasted_tokens: int
    entry_uuid: str


@dataclass(frozen=True)
class Clearing:
    """A micro-compaction that was tried on a copy; nothing is cleared."""

    result_count: int
    tokens: int


@dataclass(frozen=True)
class SuggestedClearing:
    """A kind of micro-compaction to suggest, with the tokens it would free."""

    kind: RunKind
    tokens: int


@dataclass(frozen=True)
class MicroPreview:
    """What would go now, by size and after a pause; None: there is not enough to clear."""

    by_size: Clearing | None
    by_idle_time: Clearing | None
    warning_tokens: int | None
    is_above_warning: bool
    is_idle: bool

    @property
    def suggestion(self) -> SuggestedClearing | None:
        """By size where that frees enough: it keeps more of the newest results."""
        if self.by_size is not None:
            return SuggestedClearing(RunKind.MICRO_SIZE, self.by_size.tokens)
        return SuggestedClearing(RunKind.MICRO_IDLE, self.by_idle_time.tokens) if self.by_idle_time else None


@dataclass(frozen=True)
class Inside:
    """What stored content tells. Paths are empty for those who may not read it."""

    parts: tuple[Part, ...]
    files: tuple[Part, ...]
    pieces: tuple[Piece, ...]
    duplicates: tuple[Duplicate, ...]
    largest: tuple[Result, ...]
    estimated_tokens: int
    duplicate_count: int  # of all files that were read again, also those that `duplicates` leaves out
    wasted_tokens: int
    is_prefix_known: bool
    begins_midway: bool
    micro: MicroPreview
    gap_count: int
    coverage: Coverage | None

    @property
    def wasted_share(self) -> float:
        return self.wasted_tokens / self.estimated_tokens if self.estimated_tokens else 0.0

    @property
    def missing_lines(self) -> str:
        """Empty where no line is missing."""
        return describe_gaps(self.gap_count)

    @property
    def difference(self) -> str:
        """Empty where the parts add up to what was measured."""
        return describe_difference(self.coverage)

    @property
    def found_tokens(self) -> int | None:
        """What the lines add up to, where that differs by more than a quarter from what was measured."""
        return find_difference(self.coverage)


@dataclass(frozen=True)
class ContextPage:
    """The context of a session's main conversation, or of the only one that is there."""

    session: AgentSession
    thread: str
    measured: Measured | None
    content_state: ContentState
    inside: Inside | None

    @property
    def sum_words(self) -> str:
        """How the sum of the parts compares with the context in use."""
        if self.inside is None or self.measured is None or not self.measured.context_tokens:
            return ""
        now = self.measured.context_tokens
        beyond = self.inside.estimated_tokens - now
        if beyond == 0:
            return "equal to the current context"
        difference = f"{abs(beyond):,} tokens ({abs(beyond) / now:.0%}) {'more' if beyond > 0 else 'less'}"
        is_within_margin = abs(beyond) * MARGIN_DENOMINATOR <= now
        why = " (parts are estimated, within a third; the context is measured)" if is_within_margin else ""
        return f"{difference} than the current context{why}"

    @property
    def stored_state(self) -> ContentState:
        return find_stored_state(self.session)


def read_context(actor: Actor, session: AgentSession, *, now: datetime) -> ContextPage:
    """The conversation is unpacked once, and only where it is stored."""
    state = find_content_state(actor, session)
    agent_id = _find_shown_agent(session)
    threads = name_threads(session.pk, reads_content=state is not ContentState.NOT_GRANTED)
    entries = read_thread(session, agent_id).entries if session.has_content else ()
    measured = _measure(session, agent_id)
    inside = None
    if entries:
        inside = _look_inside(session, entries, measured, now=now, shows_paths=state is ContentState.SHOWN)
    return ContextPage(session, threads.get(agent_id) or name_by_id(agent_id), measured, state, inside)


def _find_shown_agent(session: AgentSession) -> str:
    """As the session's own gauge: the main conversation, or the largest where only sub-agents are there."""
    rows = Thread.objects.filter(session=session).values_list("agent_id", "call_count")
    counts = dict(rows)
    if counts.get("") or not counts:
        return ""
    return max(counts, key=lambda agent_id: counts[agent_id])


def _measure(session: AgentSession, agent_id: str) -> Measured | None:
    calls = ApiCall.objects.filter(OF_CONVERSATION, session=session, agent_id=agent_id)
    last = calls.order_by("-number").first()
    first = calls.order_by("number").first()
    if last is None or first is None:
        return None
    return Measured(
        context_tokens=session.context_tokens,
        window_tokens=session.window_tokens,
        prompt_tokens=_add_prompt(last),
        read_tokens=last.read_tokens,
        first_prompt_tokens=_add_prompt(first),
    )


def _add_prompt(call: ApiCall) -> int:
    return call.input_tokens + call.read_tokens + call.write_5m_tokens + call.write_1h_tokens


def _look_inside(
    session: AgentSession, entries: Sequence[Entry], measured: Measured | None, *, now: datetime, shows_paths: bool
) -> Inside:
    cache = ResultCache()
    chain = find_chain(apply_boundaries(entries))
    context = slice_context(chain.entries)
    shapes = [entry for entry in entries if isinstance(entry.payload, ApiRequestShape)]
    found = compute_composition(context, shapes=shapes, opening=entries, cache=cache)
    used = measured.context_tokens if measured else found.tokens
    return Inside(
        parts=_list_parts(found),
        files=_list_files(found) if shows_paths else (),
        pieces=_list_pieces(found, shows_paths=shows_paths),
        duplicates=tuple(
            Duplicate(
                each.path if shows_paths else "",
                each.read_count,
                each.wasted_tokens,
                (each.entry_uuid or "") if shows_paths else "",
            )
            for each in found.duplicate_reads[:MOST_DUPLICATES]
        ),
        largest=tuple(
            Result(
                each.tool,
                (each.path or "") if shows_paths else "",
                each.tokens,
                (each.entry_uuid or "") if shows_paths else "",
            )
            for each in found.largest_results
        ),
        estimated_tokens=found.tokens,
        duplicate_count=len(found.duplicate_reads),
        wasted_tokens=sum(each.wasted_tokens for each in found.duplicate_reads),
        is_prefix_known=found.is_prefix_known,
        begins_midway=found.sum_category(BEFORE_FILE) > 0,
        micro=_preview_clearing(session, context.entries, used_tokens=used, now=now, cache=cache),
        gap_count=chain.count_gaps(context),
        coverage=compute_coverage(context, measure_context(context, cache), found),
    )


def _list_parts(found: Composition) -> tuple[Part, ...]:
    total = found.tokens or 1
    return tuple(
        Part(share.category, share.name or "", share.tokens, share.count, share.tokens / total)
        for share in found.shares
        if share.tokens
    )


def _list_files(found: Composition) -> tuple[Part, ...]:
    total = found.tokens or 1
    return tuple(
        Part("file", share.name or "", share.tokens, share.count, share.tokens / total)
        for share in found.files[:MOST_FILES]
    )


def _list_pieces(found: Composition, *, shows_paths: bool) -> tuple[Piece, ...]:
    """Every part once, those that many files make up file by file; what the smaller files take stays together."""
    shown = found.file_shares[:MOST_FILES] if shows_paths else ()
    pieces = [Piece(share.category, share.tool, share.path, share.tokens) for share in shown]
    for share in found.shares:
        own = (each.tokens for each in shown if (each.category, each.tool) == (share.category, share.name))
        rest = share.tokens - sum(own)
        if rest > 0:
            pieces.append(Piece(share.category, share.name or "", "", rest))
    return tuple(pieces)


def _preview_clearing(
    session: AgentSession, entries: Sequence[Entry], *, used_tokens: int, now: datetime, cache: ResultCache
) -> MicroPreview:
    """Both ways are tried as if their moment had come, so that the page can say what waiting or pausing would do."""
    warning = _find_warning(session)
    idle = compute_idle_time(entries, now)
    gap = timedelta(seconds=DEFAULT_IDLE_SETTINGS.gap_seconds)
    later = now if idle is None or idle > gap else now + gap - idle + timedelta(seconds=1)
    by_size = clear_by_size(entries, used_tokens=used_tokens, warning_tokens=0, now=now, cache=cache)
    by_idle = clear_by_idle_time(entries, now=later, cache_ttl_seconds=0, cache=cache)
    return MicroPreview(
        by_size=_sum_up(by_size),
        by_idle_time=_sum_up(by_idle),
        warning_tokens=warning,
        is_above_warning=warning is not None and used_tokens >= warning,
        is_idle=idle is not None and idle > gap,
    )


def _sum_up(outcome: MicroOutcome | None) -> Clearing | None:
    return None if outcome is None else Clearing(len(outcome.cleared_tool_ids), outcome.tokens_saved)


def _find_warning(session: AgentSession) -> int | None:
    lines = find_policy(session.team).draw_session_lines(session)
    return lines.warning.tokens if lines else None
