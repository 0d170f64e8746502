"""Drawing a session: its threads judged one by one, then the columns that lists and gauges read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, islice

from compaction.cache.breaks import Verdict, judge_thread
from compaction.cache.policy import DEFAULT_POLICY, CachePolicy
from compaction.context.cache_ttl import compute_expiry
from compaction.context.forecast import MEMORY_POINTS, CallPoint, NotEnoughData, Pace, measure_pace
from compaction.context.policy import Policy
from compaction.context.thresholds import Thresholds, compute_thresholds
from compaction.context.windows import ModelInUse, get_window
from compaction.llm.names import LONG_WINDOW_SUFFIX
from compaction.llm.prices import NO_PRICES, Price
from compaction.prompt.fingerprint import Fingerprint
from compaction.timeline.build import Thread, build_timeline
from compaction.timeline.calls import Call
from compaction.timeline.context_size import measure_thread_context
from compaction.timeline.observations import REPORT, LineKind, Observation
from dashboard.ingest.picture.calls import draw_calls
from dashboard.ingest.picture.client_told import (
    add_reported_window,
    find_end,
    find_reported_context,
    find_reported_warmth,
    find_status,
)
from dashboard.ingest.picture.client_totals import find_client_cost, find_client_tokens
from dashboard.ingest.picture.columns import Row, fit, fit_count, fit_id
from dashboard.ingest.picture.compactions import draw_compactions, tell_compactions
from dashboard.ingest.picture.losses import draw_losses
from dashboard.ingest.picture.past_policies import PolicyAt
from dashboard.ingest.picture.tellers import is_of_claude_code
from dashboard.ingest.picture.unanswered import draw_unanswered
from dashboard.session_forecasts import serialize_forecast
from dashboard.session_levels import work_out_level

# Raised when stored observations give other rows than before: all stored sessions are worked out again.
PROJECTION_VERSION = 4
RECENT_CALLS = 24  # as many as a sparkline can show
_AGENT, _PROMPT, _TITLE = LineKind.AGENT, LineKind.PROMPT, LineKind.TITLE


@dataclass(frozen=True, slots=True)
class SessionPicture:
    """Rows by their natural key; `session` lacks the totals that depend on which calls count (see totals)."""

    session: Row
    threads: dict[str, Row] = field(default_factory=dict)
    calls: dict[str, Row] = field(default_factory=dict)
    losses: dict[str, Row] = field(default_factory=dict)
    compactions: dict[str, Row] = field(default_factory=dict)
    unanswered: dict[str, Row] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Thread:
    agent_id: str
    facts: Sequence[Observation]
    unusual: Sequence[Observation]
    calls: tuple[Call, ...]
    turns: Sequence[Call]  # without what the client did beside the conversation, which fills no window
    contexts: Sequence[int]  # tokens after each of the turns
    in_use: ModelInUse | None
    verdicts: tuple[Verdict, ...]


def draw_picture(
    facts: Iterable[Observation],
    *,
    external_id: str,
    policy: Policy,
    policy_at: PolicyAt | None = None,
    prices: Mapping[str, Price] = NO_PRICES,
    shapes: Mapping[str, Fingerprint] | None = None,
) -> SessionPicture:
    """`shapes`: prints by their digest here. `prices`: the team's own. `policy_at`: which policy was in force then;
    None: always this one."""
    observed = list(facts)
    timeline = build_timeline(observed, shapes=shapes or {})
    ordered, unusual = timeline.observations, timeline.unusual
    is_claude_code = is_of_claude_code(observed, external_id)
    cache_policy = CachePolicy(prices=prices) if prices else DEFAULT_POLICY
    threads = [_judge(thread, cache_policy, is_claude_code=is_claude_code) for thread in timeline.threads]
    main, status = threads[0], find_status(unusual)
    # Of some sessions only a sub-agent's file is there: then it is what can be shown.
    shown = main if main.turns or status else max(threads, key=lambda thread: len(thread.turns))
    gauge = _draw_gauge(shown, policy, status) | {"is_claude_code": is_claude_code}
    picture = SessionPicture(_draw_session(ordered, unusual, main, external_id) | gauge)
    for thread in threads:
        _add_thread(picture, thread, policy_at or (lambda _: policy), cache_policy, is_claude_code=is_claude_code)
    return picture


def _find_model_in_use(calls: Sequence[Call], contexts: Sequence[int], *, is_claude_code: bool) -> ModelInUse | None:
    """The model of the last call. A context that no window of its name holds was in the long one."""
    last = next((call for call in reversed(calls) if call.usage.prompt_tokens), None)
    if last is None or not last.model:
        return None
    in_use = ModelInUse(
        last.model, is_claude_code=is_claude_code, client_version=last.client_version, responses=len(calls)
    )
    window = get_window(in_use)
    same = [tokens for call, tokens in zip(calls, contexts, strict=True) if call.model == last.model]
    if window is not None and max(same) > window.tokens:
        return _infer_long_window(in_use)
    return in_use


def _infer_long_window(in_use: ModelInUse) -> ModelInUse:
    """As it is where the model has no longer one."""
    long = replace(in_use, model=f"{in_use.model}{LONG_WINDOW_SUFFIX}", is_window_inferred=True)
    window, longer = get_window(in_use), get_window(long)
    return long if window and longer and longer.tokens > window.tokens else in_use


def _judge(thread: Thread, policy: CachePolicy, *, is_claude_code: bool) -> _Thread:
    turns = thread.conversation_calls
    contexts = [call.usage.context_tokens for call in turns]
    in_use = _find_model_in_use(turns, contexts, is_claude_code=is_claude_code)
    return _Thread(
        agent_id=fit_id(thread.agent_id),
        facts=thread.observations,
        unusual=thread.unusual,
        calls=thread.calls,
        turns=turns,
        contexts=contexts,
        in_use=in_use,
        verdicts=judge_thread(thread.calls, policy),
    )


def _add_thread(
    picture: SessionPicture, thread: _Thread, policy_at: PolicyAt, policy: CachePolicy, *, is_claude_code: bool
) -> None:
    if not thread.facts:
        return
    calls = {call.call_id: call for call in thread.calls}
    rows = draw_calls(thread.agent_id, thread.calls, policy.prices)
    picture.calls.update({call_id: row for call_id, row in rows.items() if call_id not in picture.calls})
    picture.losses.update(draw_losses(thread.agent_id, calls, thread.verdicts, policy))

    def find_lines(model: str | None, version: str | None, at: datetime | None) -> Thresholds | None:
        if not model:
            return None
        then, now = ModelInUse(model, is_claude_code=is_claude_code, client_version=version), thread.in_use
        is_long = now is not None and now.is_window_inferred and now.model == f"{model}{LONG_WINDOW_SUFFIX}"
        return compute_thresholds(policy_at(at), _infer_long_window(then) if is_long else then)

    if tell_compactions(thread.unusual):
        picture.compactions.update(draw_compactions(thread.agent_id, thread.facts, thread.calls, find_lines))
    picture.unanswered.update(draw_unanswered(thread.agent_id, thread.unusual))
    if thread.calls or thread.agent_id:
        picture.threads[thread.agent_id] = _draw_thread(thread)


def _draw_thread(thread: _Thread) -> Row:
    abouts = [fact for fact in thread.unusual if fact.kind is _AGENT]
    about = abouts[0] if abouts else None
    in_use = thread.in_use
    window = get_window(in_use) if in_use else None
    times = [fact.at for fact in thread.facts if fact.at]
    size = measure_thread_context(thread.facts, thread.turns)
    return {
        "agent_type": fit(about.name, 200) if about else "",
        "description": fit(about.words, 300) if about else "",
        "model": fit(in_use.model if in_use else "", 200),
        "started_at": min(times, default=None),
        "last_at": max(times, default=None),
        "window_tokens": window.tokens if window else None,
        "context_tokens": fit_count(size.tokens),
        "pending_tokens": fit_count(size.estimated_tokens),
        "peak_tokens": fit_count(max([size.tokens, *_list_sizes(thread)])),
        "call_count": len(thread.calls),
    }


def _draw_session(
    ordered: Sequence[Observation], unusual: Sequence[Observation], main: _Thread, external_id: str
) -> Row:
    times = [fact.at for fact in ordered if fact.at]
    path = next((fact.cwd for fact in chain(main.facts, ordered) if fact.cwd), "")
    problem_count = [fact.kind for fact in unusual].count(LineKind.PROBLEM)
    report_count = [fact.type for fact in unusual].count(REPORT)
    prompt_count = [fact.kind is _PROMPT for fact in main.facts].count(True)
    return {
        "title": fit(_find_title(ordered), 300),
        "project_path": fit(path, 1000),
        "project": fit((path or "").replace("\\", "/").rstrip("/").rpartition("/")[2], 200),
        "branch": fit(next((fact.branch for fact in reversed(main.facts) if fact.branch), ""), 300),
        "client_version": fit(next((fact.version for fact in reversed(ordered) if fact.version), ""), 60),
        "forked_from": _find_origin(ordered, external_id),
        "started_at": min(times, default=None),
        "last_at": max(times, default=None),
        "ended_at": find_end(unusual),
        "client_cost_usd": find_client_cost(unusual),
        "client_tokens": find_client_tokens(unusual),
        "turn_count": max(prompt_count, max((call.turn for call in main.calls), default=0)),
        "entry_count": len(ordered) - problem_count - report_count,
        "problem_count": problem_count,
        "projection_version": PROJECTION_VERSION,
        "reading_version": min((fact.reading for fact in ordered if fact.type != REPORT), default=None),
    }


def _find_title(facts: Sequence[Observation]) -> str:
    """The longest of those without a time: which came last is not known of them. Else how the first prompt begins."""
    spoken = [(fact.kind, fact.words) for fact in facts if fact.words]
    titles = [words for kind, words in spoken if kind is _TITLE]
    prompt = next((words for kind, words in spoken if kind is _PROMPT), None)
    if prompt is None:  # no lines: as a request began
        prompt = next((words for kind, words in spoken if kind is LineKind.REQUEST), "")
    return max(titles, key=lambda title: (len(title), title), default=prompt)


def _find_origin(facts: Iterable[Observation], external_id: str) -> str:
    """The session whose lines this one repeats: lines keep the id they were first written under."""
    others = {fact.session_id for fact in facts} - {external_id}
    return fit_id(min((name for name in others if name), default=""))


def _draw_gauge(main: _Thread, policy: Policy, status: Observation | None) -> Row:
    in_use = add_reported_window(main.in_use, status)
    size = find_reported_context(main.turns, status) or measure_thread_context(main.facts, main.turns)
    row: Row = {
        "model": fit(in_use.model if in_use else "", 200),
        "context_tokens": fit_count(size.tokens),
        "pending_tokens": fit_count(size.estimated_tokens),
        "peak_tokens": fit_count(max([size.tokens, *_list_sizes(main)])),
        "warm_until": find_reported_warmth(main.turns, status) or _find_warm_until(main),
        "reported_window_tokens": in_use.reported_window_tokens if in_use else None,
        "is_window_inferred": in_use.is_window_inferred if in_use else False,
        "recent_hits": _list_recent_hits(main.turns),
    }
    level = work_out_level(policy, in_use or ModelInUse(""), size.tokens)
    row |= {name: getattr(level, name) for name in level.__slots__}
    return row | serialize_forecast(_measure_pace(main), level.auto_line_tokens, size.tokens)._asdict()


def _list_sizes(thread: _Thread) -> Iterator[int]:
    """All that is known of how full it was: after each call, and before each compaction, when what came in since the
    last call counted too."""
    yield from thread.contexts
    for fact in thread.unusual:
        if fact.compacted is not None and fact.compacted.before_tokens is not None:
            yield fact.compacted.before_tokens


def _find_warm_until(main: _Thread) -> datetime | None:
    baseline = main.verdicts[-1].baseline if main.verdicts else None
    if baseline is None or baseline.ttl is None or not baseline.cached_tokens:
        return None
    ended_at = next((call.ended_at for call in reversed(main.calls) if call.call_id == baseline.call_id), None)
    start = ended_at or baseline.at
    return compute_expiry(start, baseline.ttl)


def _list_recent_hits(calls: Sequence[Call]) -> list[int]:
    usages = [call.usage for call in _take_last(calls, RECENT_CALLS)]
    return [round(100 * usage.cache_read_tokens / usage.prompt_tokens) for usage in usages]


def _take_last(calls: Sequence[Call], count: int) -> list[Call]:
    """Of those that sent something, in their order."""
    return list(islice((call for call in reversed(calls) if call.usage.prompt_tokens), count))[::-1]


def _measure_pace(main: _Thread) -> Pace | NotEnoughData:
    return measure_pace(
        [
            CallPoint(
                call.usage.context_tokens,
                call.started_at,
                call.turn,
                is_first_after_compaction=call.is_after_compaction,
            )
            for call in _take_last(main.turns, MEMORY_POINTS)
        ]
    )
