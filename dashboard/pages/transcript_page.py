"""The transcript tab: one page of a conversation, found by an entry, a call or a place; only its segments are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from django.urls import reverse

from compaction.timeline.observations import REPORT, LineKind, Observation
from compaction.transcripts.client_protocol import INVISIBLE_ATTACHMENTS
from dashboard.access import Actor
from dashboard.ingest.stored_entries import LinePlaces, read_entries, read_places
from dashboard.models import AgentSession, ObservedCompaction
from dashboard.pages.compaction_rows import CompactionRow, make_row
from dashboard.pages.content_state import ContentState, find_content_state
from dashboard.pages.entry_search import FoundStretch, find_entries
from dashboard.pages.thread_names import name_by_id, name_threads
from dashboard.pages.transcript_entry import CallPart, EntryView, view_entries

TAB = "transcript"
PAGE_SIZE = 50
FOUND_SIZE = 50
_LEAD = 5  # lines shown above the one that was asked for
_MOST_RESULTS = 200  # of one answer that a page takes along
_SPOKEN = frozenset(
    {
        LineKind.RESPONSE,
        LineKind.PROMPT,
        LineKind.RESULT,
        LineKind.COMMAND,
        LineKind.SUMMARY,
        LineKind.BOUNDARY,
        LineKind.MICRO,
        LineKind.OLDER_SUMMARY,
        LineKind.ATTACHMENT,
        LineKind.FAILURE,
    }
)


@dataclass(frozen=True)
class TranscriptAsked:
    """Which page: the one with an entry or a call, behind or before an entry, the last one; else the first."""

    agent: str = ""
    entry: str = ""
    call: str = ""
    after: str = ""
    before: str = ""
    is_last: bool = False


@dataclass(frozen=True)
class SearchAsked:
    """Words to look for, and the number of the first match to list."""

    words: str = ""
    first: int = 1


@dataclass(frozen=True)
class ThreadChoice:
    agent_id: str
    name: str
    line_count: int
    is_current: bool


@dataclass(frozen=True)
class Divider:
    """What a compaction did, where it stands in the conversation. `restored`: kind, name and tokens."""

    row: CompactionRow
    restored: tuple[tuple[str, str, int], ...] | None


@dataclass(frozen=True)
class PromptPlace:
    """The number of a prompt in its conversation, and the prompts before and after it."""

    number: int
    total: int
    previous: str | None
    next: str | None


@dataclass(frozen=True)
class ShownEntry:
    """An entry on a page; `is_wanted`: the link that led here names it, or a result inside it."""

    view: EntryView
    divider: Divider | None
    is_wanted: bool
    prompt: PromptPlace | None = None


@dataclass(frozen=True)
class TranscriptPage:
    """A stretch of one thread. `previous` and `next` are entries the neighbouring pages end before and begin behind.

    `prompt_before` is the last prompt before this page, or else the first one; `prompt_after` the first prompt on or
    after this page, or else the last one.
    """

    agent_id: str
    threads: tuple[ThreadChoice, ...]
    entries: tuple[ShownEntry, ...]
    first: int
    last: int
    total: int
    previous: str | None
    next: str | None
    wanted: str
    is_missing: bool  # what the link names is not among the stored lines
    prompt_count: int = 0
    prompt_before: str | None = None
    prompt_after: str | None = None


@dataclass(frozen=True)
class TranscriptTab:
    """`page` and `found` are None where the words are withheld or not stored; `found` also where nothing is sought."""

    content_state: ContentState
    page: TranscriptPage | None
    found: FoundStretch | None


def entry_url(session_id: int, entry_uuid: str, words: str = "") -> str:
    """The page of the transcript that holds an entry; with words that are looked for, they stay in the address.
    Clients choose uuids, so nothing is taken for granted."""
    name = quote(entry_uuid, safe="")
    sought = f"&text={quote(words, safe='')}" if words else ""
    return f"{reverse('session_tab', args=[session_id, TAB])}?entry={name}{sought}#entry-{name}"


def call_url(session_id: int, call_id: str) -> str:
    """The page of the transcript where the answer of a call begins."""
    return f"{reverse('session_tab', args=[session_id, TAB])}?call={quote(call_id, safe='')}"


def read_transcript_tab(
    actor: Actor, session: AgentSession, asked: TranscriptAsked, search: SearchAsked
) -> TranscriptTab:
    state = find_content_state(actor, session)
    if state is not ContentState.SHOWN:
        return TranscriptTab(state, None, None)
    found = None
    if search.words.strip():
        found = find_entries(session, search.words, limit=FOUND_SIZE, first=search.first, reached=asked.entry)
    return TranscriptTab(state, read_transcript_page(session, asked), found)


def read_transcript_page(session: AgentSession, asked: TranscriptAsked, *, size: int = PAGE_SIZE) -> TranscriptPage:
    """For those who may read it. Facts of all lines give the order, content is unpacked for the page alone."""
    places = read_places(session)
    threads = {name: _list_spoken(facts) for name, facts in places.threads.items()}
    wanted = asked.entry or places.calls.get(asked.call, asked.call)
    agent_id = _find_thread(threads, wanted, asked.agent)
    facts = threads.get(agent_id, [])
    place = next((number for number, fact in enumerate(facts) if fact.id == wanted), None) if wanted else None
    start, end = _find_stretch(facts, asked, place, size)
    prompts = [(number, fact.id) for number, fact in enumerate(facts) if fact.kind is LineKind.PROMPT]
    before = [uuid for number, uuid in prompts if number < start]
    after = [uuid for number, uuid in prompts if number >= start]
    return TranscriptPage(
        agent_id=agent_id,
        threads=_list_choices(session, threads, agent_id),
        entries=_show_entries(session, places, facts[start:end], wanted, [uuid for _, uuid in prompts]),
        first=start + 1 if facts else 0,
        last=end,
        total=len(facts),
        previous=facts[start].id if start else None,
        next=facts[end - 1].id if end < len(facts) else None,
        wanted=wanted if place is not None else "",
        is_missing=bool(wanted) and place is None,
        prompt_count=len(prompts),
        prompt_before=next(iter(before[-1:] or after), None),
        prompt_after=next(iter(after or before[-1:]), None),
    )


def _list_spoken(facts: Sequence[Observation]) -> list[Observation]:
    return [fact for fact in facts if _is_spoken(fact)]


def _is_spoken(fact: Observation) -> bool:
    """What a person or the model reads, and boundaries; not the client's own book-keeping or telemetry."""
    if fact.type == REPORT or fact.name in INVISIBLE_ATTACHMENTS:
        return False
    return fact.kind in _SPOKEN or (fact.kind is LineKind.OTHER and fact.type in ("user", "assistant"))


def _find_thread(threads: Mapping[str, Sequence[Observation]], wanted: str, agent: str) -> str:
    """The thread that holds what is wanted, else the one asked for, else the first that says anything."""
    holding = (name for name, facts in threads.items() if any(fact.id == wanted for fact in facts))
    if wanted and (name := next(holding, None)) is not None:
        return name
    if agent in threads and (agent or threads[agent]):
        return agent
    return next((name for name, facts in threads.items() if facts), "")


def _find_stretch(
    facts: Sequence[Observation], asked: TranscriptAsked, place: int | None, size: int
) -> tuple[int, int]:
    """From and up to which line. No page begins with a result: it stays with the call it answers."""
    numbers = {fact.id: number for number, fact in enumerate(facts)}
    if place is not None:
        start = _step_back(facts, max(0, place - min(_LEAD, size // 2)))
    elif asked.before in numbers or asked.is_last:
        end = numbers.get(asked.before, len(facts))
        return _step_back(facts, max(0, end - size)), end
    else:
        start = numbers.get(asked.after, -1) + 1
    end = min(max(start + size, (place or 0) + 1), len(facts))
    while end < len(facts) and end - start < size + _MOST_RESULTS and facts[end].kind is LineKind.RESULT:
        end += 1
    return start, end


def _step_back(facts: Sequence[Observation], start: int) -> int:
    lowest = max(0, start - _MOST_RESULTS)
    while start > lowest and facts[start].kind is LineKind.RESULT:
        start -= 1
    return start


def _list_choices(
    session: AgentSession, threads: Mapping[str, Sequence[Observation]], current: str
) -> tuple[ThreadChoice, ...]:
    names = name_threads(session.pk, reads_content=True)
    return tuple(
        ThreadChoice(name, names.get(name) or name_by_id(name), len(facts), name == current)
        for name, facts in threads.items()
        if facts or name == current
    )


def _show_entries(
    session: AgentSession, places: LinePlaces, facts: Sequence[Observation], wanted: str, prompts: Sequence[str]
) -> tuple[ShownEntry, ...]:
    views = view_entries(facts, read_entries(session, places, [fact.id for fact in facts]))
    dividers = _read_dividers(session, [view.uuid for view in views if view.is_divider])
    prompt_places = _number_prompts(prompts)
    return tuple(
        ShownEntry(view, dividers.get(view.uuid), wanted in _list_names(view), prompt_places.get(view.uuid))
        for view in views
    )


def _number_prompts(prompts: Sequence[str]) -> dict[str, PromptPlace]:
    total = len(prompts)
    return {
        uuid: PromptPlace(
            number,
            total,
            prompts[number - 2] if number > 1 else None,
            prompts[number] if number < total else None,
        )
        for number, uuid in enumerate(prompts, start=1)
    }


def _list_names(view: EntryView) -> tuple[str, ...]:
    """The line itself, and lines whose results are shown inside it."""
    results = (part.result for part in view.parts if isinstance(part, CallPart))
    return view.uuid, *(result.entry_uuid for result in results if result is not None)


def _read_dividers(session: AgentSession, uuids: Sequence[str]) -> dict[str, Divider]:
    if not uuids:
        return {}
    rows = ObservedCompaction.objects.filter(session=session, entry_uuid__in=uuids).select_related("session")
    return {
        row.entry_uuid: Divider(
            make_row(row, session_name="", thread="", scale_tokens=0),
            None
            if row.restored is None
            else tuple((str(told["kind"]), str(told["name"]), int(str(told["tokens"]))) for told in row.restored),
        )
        for row in rows
    }
