"""Settings in force for a session: every figure behind its lines, the switches, and the cache's lifetime as seen."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import BooleanField, Count, ExpressionWrapper, Max, Q

from compaction.context.policy import Policy
from compaction.context.thresholds import Threshold, Thresholds, ThresholdState
from compaction.context.windows import FormulaTerm
from dashboard import access
from dashboard.access import Act, Actor
from dashboard.models import AgentSession, Team
from dashboard.pages.client_words import ClientWord, read_client_words
from dashboard.pages.gauge_bar import WINDOW_NOT_KNOWN
from dashboard.pages.session_page import LinesInForce

STATE_WORDS = {
    ThresholdState.IN_FORCE: "The client compacts when its context reaches the auto-compact threshold.",
    ThresholdState.NOT_SEEN: "The rule has this threshold, but this client version was not observed to act on it.",
    ThresholdState.OFF: "Off: the client does not auto-compact. The other thresholds are set below the usable window.",
}
STATE_LABELS = {ThresholdState.IN_FORCE: "on", ThresholdState.NOT_SEEN: "not observed", ThresholdState.OFF: "off"}
# For agents other than Claude Code the time of a compaction is unknown, unless they ask Plimsoll.
GUIDE = "guidance only"
GUIDE_WORDS = (
    "For guidance only: the thresholds follow Claude Code's rule, but this session uses a different agent. "
    "That agent compacts by its own rules, or when it asks Plimsoll whether to continue."
)
OFF_GUIDE_WORDS = "Off in the team policy. The other thresholds are set below the usable window."
_SWITCHES = (
    ("is_compaction_enabled", "Compaction", "compaction"),
    ("is_auto_enabled", "Automatic compaction", "auto-compact threshold"),
    ("is_micro_enabled", "Micro-compaction", "micro-compaction"),
    ("is_session_memory_enabled", "Session memory", "session memory"),
    ("is_reactive_enabled", "Compaction after a prompt-too-long error", ""),
)


@dataclass(frozen=True, slots=True)
class LineSetting:
    """One step of the sum: `glossary` is its term, `style` the class of its level; a line that is off does not act."""

    name: str
    glossary: str
    tokens: int
    formula: str
    origin: str
    words: str
    style: str = ""
    is_acting: bool = True


@dataclass(frozen=True, slots=True)
class Switch:
    name: str
    value: str
    origin: str
    glossary: str = ""


@dataclass(frozen=True, slots=True)
class PolicyVersion:
    """The team's decision in force; version 0 while nobody decided anything."""

    version: int
    changed_by: str = ""
    changed_at: datetime | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class SeenLifetime:
    """How many calls of a thread wrote for five minutes and for an hour, and which of both the newest writes had."""

    thread: str
    short_count: int
    long_count: int
    newest: str

    @property
    def sentence(self) -> str:
        if not self.newest:
            return "Unknown: no call has written to the cache."
        if self.short_count and self.long_count:
            return f"Both lifetimes are in use; the newest writes use {self.newest}."
        return f"All cache writes use {self.newest}."


@dataclass(frozen=True, slots=True)
class SettingsInForce:
    lines: tuple[LineSetting, ...]
    is_claude_code: bool
    state: str
    state_words: str
    remarks: tuple[str, ...]
    switches: tuple[Switch, ...]
    notes: tuple[str, ...]
    lifetimes: tuple[SeenLifetime, ...]
    chosen_ttl: str
    policy: PolicyVersion
    is_behind: bool
    may_tune: bool
    keeping: "Keeping"
    client_words: tuple[ClientWord, ...] = ()


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long it stays, what there is to take away, and what deleting it would lose."""

    content_days: int | None
    metrics_days: int | None
    may_download_words: bool
    may_delete: bool
    run_count: int


def read_settings(actor: Actor, session: AgentSession, in_force: LinesInForce) -> SettingsInForce:
    policy = in_force.settings.lines_policy.for_model(session.model)
    lines = in_force.lines
    state, state_words = _say_state(in_force)
    return SettingsInForce(
        lines=tuple(list_line_settings(lines)) if lines else (),
        is_claude_code=session.is_claude_code,
        state=state,
        state_words=state_words,
        remarks=lines.remarks if lines else (),
        switches=tuple(_list_switches(policy)),
        notes=policy.notes,
        lifetimes=tuple(_read_lifetimes(actor, session)),
        chosen_ttl=str(policy.cache_ttl) if policy.cache_ttl else "",
        policy=_read_policy_version(actor, session.team, in_force.settings.version),
        is_behind=session.policy_version != in_force.settings.version,
        may_tune=actor.may(Act.TUNE, session.team),
        client_words=read_client_words(session),
        keeping=Keeping(
            content_days=in_force.settings.content_days,
            metrics_days=in_force.settings.metrics_days,
            may_download_words=session.has_content and access.reads_content(actor, session),
            may_delete=actor.may(Act.MANAGE, session.team),
            run_count=access.runs(actor).filter(session=session).count() if actor.may(Act.MANAGE, session.team) else 0,
        ),
    )


def _say_state(in_force: LinesInForce) -> tuple[str, str]:
    """Whether the auto-compact line acts, in a word and in a sentence."""
    if in_force.lines is None:
        return "unknown", WINDOW_NOT_KNOWN
    state = in_force.lines.auto_state
    if in_force.in_use.is_claude_code:
        return STATE_LABELS[state], STATE_WORDS[state]
    return (STATE_LABELS[state], OFF_GUIDE_WORDS) if state is ThresholdState.OFF else (GUIDE, GUIDE_WORDS)


def list_line_settings(lines: Thresholds) -> Iterator[LineSetting]:
    """From the window down: what is taken off at each step, and who said so."""
    window, is_auto_on = lines.window, lines.is_auto_on
    yield LineSetting("window", "window", window.tokens, "", str(window.origin), window.description)
    yield _show_term("reserve", lines.reserve)
    yield _show_line(lines.available, "available", "available")
    yield _show_line(lines.warning, "warning", "warning threshold", style="warning")
    yield _show_line(lines.error, "error", "error threshold", style="error")
    yield _show_line(lines.auto, "auto-compact", "auto-compact threshold", style="auto", is_acting=is_auto_on)
    yield _show_line(lines.blocking, "blocking", "blocking threshold", style="blocking")


def _show_term(name: str, term: FormulaTerm) -> LineSetting:
    return LineSetting(name, name, term.tokens, "", str(term.origin), term.description)


def _show_line(line: Threshold, name: str, glossary: str, *, style: str = "", is_acting: bool = True) -> LineSetting:
    term = line.terms[-1]
    return LineSetting(name, glossary, line.tokens, line.formula, str(term.origin), term.description, style, is_acting)


def _list_switches(policy: Policy) -> Iterator[Switch]:
    for setting, name, glossary in _SWITCHES:
        value = "on" if getattr(policy, setting) else "off"
        yield Switch(name, value, str(policy.get_origin(setting)), glossary)
    if policy.auto_percent is not None:
        origin = policy.get_origin("auto_percent")
        yield Switch("Auto-compact threshold, % of usable window", f"{policy.auto_percent}%", str(origin))


def _read_lifetimes(actor: Actor, session: AgentSession) -> Iterator[SeenLifetime]:
    """The main conversation and all sub-agents together: they may have been given different lifetimes."""
    short, long = Q(write_5m_tokens__gt=0), Q(write_1h_tokens__gt=0)
    is_main = ExpressionWrapper(Q(agent_id=""), output_field=BooleanField())
    found = access.calls(actor).filter(session=session).order_by().values(is_main=is_main)
    seen = found.annotate(
        short=Count("pk", filter=short),
        long=Count("pk", filter=long),
        short_at=Max("at", filter=short),
        long_at=Max("at", filter=long),
    )
    for one in sorted(seen, key=lambda told: not told["is_main"]):
        name = "main conversation" if one["is_main"] else "sub-agents"
        yield SeenLifetime(name, one["short"], one["long"], _choose_newest(one))


def _choose_newest(seen: Mapping[str, Any]) -> str:
    """Of a mix without times the shorter one: it is what can be relied on."""
    if not seen["short"]:
        return "1 hour" if seen["long"] else ""
    is_long_newer = seen["short_at"] and seen["long_at"] and seen["long_at"] > seen["short_at"]
    return "1 hour" if seen["long"] and is_long_newer else "5 minutes"


def _read_policy_version(actor: Actor, team: Team, version: int) -> PolicyVersion:
    if version == 0:
        return PolicyVersion(0)
    row = access.policies(actor, team.slug).filter(version=version).first()
    if row is None:
        return PolicyVersion(version)
    return PolicyVersion(version, row.changed_by_name, row.created_at, row.note)
