"""The decoder of hooks: what Claude Code hands to a command hook or posts to an HTTP hook, as facts of its session."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from compaction.context.tokens import count_text_tokens
from compaction.timeline.observations import (
    REPORT,
    ClientReport,
    CompactionRecord,
    LineKind,
    Observation,
)
from dashboard.client.status_values import read_count, read_number
from dashboard.ingest.client_json import find_time, read_clean_text, read_objects, read_text
from dashboard.ingest.observed import ObservedLine, ObservedSession, Prepared, Rules
from dashboard.ingest.transcripts import find_redactor

NAME = "hooks"
NOT_KNOWN = "hook event of another kind"
NO_SESSION = "hook without a session"
EVENTS = frozenset(
    {"SessionStart", "UserPromptSubmit", "PreCompact", "PostCompact", "Stop", "SubagentStop", "SessionEnd"}
)
_COMPACTING = frozenset({"PreCompact", "PostCompact"})
_DETAILS = {"SessionStart": "source", "SessionEnd": "reason"}
_LONGEST_SUMMARY = 2**20


def prepare_hooks(data: bytes, rules: Rules, *, arrived_at: datetime) -> Prepared:
    """Everything that can be done without a database."""
    told, problems = read_objects(data, NAME)
    sessions: dict[str, list[ObservedLine]] = {}
    drops: Counter[str] = Counter()
    redactions: Counter[str] = Counter()
    for hook in told:
        session_id = read_text(hook.get("session_id"))
        if read_text(hook.get("hook_event_name")) not in EVENTS:
            drops[NOT_KNOWN] += 1
        elif session_id is None:
            drops[NO_SESSION] += 1
        else:
            line, counts = _observe(hook, rules, arrived_at)
            redactions += counts
            sessions.setdefault(session_id, []).append(line)
    return Prepared(
        name=NAME,
        sessions=tuple(ObservedSession(name, tuple(lines)) for name, lines in sessions.items()),
        line_count=len(told) + len(problems),
        problems=tuple(problems),
        drops=dict(drops),
        redactions=dict(redactions),
    )


def _observe(hook: Mapping[str, Any], rules: Rules, arrived_at: datetime) -> tuple[ObservedLine, Counter[str]]:
    fact = _read_hook(hook, rules, arrived_at)
    summary = hook.get("compact_summary") if fact.client_report and fact.client_report.event == "PostCompact" else None
    if not isinstance(summary, str) or not summary or not rules.keeps_content:
        return ObservedLine(fact), Counter()
    redacted, counts = find_redactor(rules).redact_one(summary.encode("utf-8", "replace"))
    words = read_text(redacted.decode("utf-8", "replace"), _LONGEST_SUMMARY)
    line = {"type": "hook", "hook": "PostCompact", "timestamp": (fact.at or arrived_at).isoformat(), "summary": words}
    content = json.dumps(line, ensure_ascii=False).encode()
    kept = msgspec.structs.replace(fact, has_content=True, is_redacted=bool(counts), size_bytes=len(content))
    return ObservedLine(kept, content), counts


def _read_hook(hook: Mapping[str, Any], rules: Rules, arrived_at: datetime) -> Observation:
    event = str(hook["hook_event_name"])
    agent_id = read_clean_text(hook.get("agent_id"), rules)
    # Other hooks of a sub-agent say nothing about its window; a thread of its own would be made of them alone.
    is_sidechain = agent_id is not None and event in _COMPACTING
    return Observation(
        id=_name_fact(hook, event),
        kind=LineKind.COMPACTION_REPORT if event == "PostCompact" else LineKind.HOOK,
        type=REPORT,
        at=find_time(hook.get("plimsoll_at"), arrived_at=arrived_at),
        agent_id=agent_id if is_sidechain else None,
        is_sidechain=is_sidechain,
        cwd=read_clean_text(hook.get("cwd"), rules, 1000),
        compaction=_read_compacted(hook, rules) if event in _COMPACTING else None,
        client_report=_read_told(hook, event, rules),
    )


def _read_compacted(hook: Mapping[str, Any], rules: Rules) -> CompactionRecord:
    summary = hook.get("compact_summary")
    tokens = count_text_tokens(summary) if isinstance(summary, str) and summary else None
    return CompactionRecord(trigger=read_clean_text(hook.get("trigger"), rules, 20), summary_tokens=tokens)


def _read_told(hook: Mapping[str, Any], event: str, rules: Rules) -> ClientReport:
    is_expired = hook.get("prompt_cache_likely_expired")
    rebuild_usd = read_number(hook.get("estimated_cache_write_usd"))
    return ClientReport(
        event=event,
        detail=read_clean_text(hook.get(_DETAILS.get(event, "")), rules, 40),
        prompt_id=read_text(hook.get("prompt_id")),
        model=read_text(hook.get("model")),
        context_tokens=read_count(hook.get("context_tokens")),
        is_cache_expired=is_expired if isinstance(is_expired, bool) else None,
        rebuild_usd=None if rebuild_usd is None or rebuild_usd < 0 else f"{rebuild_usd:.6f}",
    )


def _name_fact(hook: Mapping[str, Any], event: str) -> str:
    """The same for the same event, however often it is sent. An HTTP hook has no id: two that say the same are one,
    which stands at the time of the last."""
    prompt_id = read_text(hook.get("prompt_id"))
    if event == "UserPromptSubmit" and prompt_id:
        return f"hook:prompt:{prompt_id}"
    kind = "compaction" if event == "PostCompact" else event
    given = read_text(hook.get("plimsoll_event_id"), 80)
    if given:
        return f"hook:{kind}:{given}"
    said = json.dumps({name: value for name, value in hook.items() if name != "plimsoll_at"}, sort_keys=True)
    return f"hook:{kind}:{hashlib.blake2b(said.encode(), digest_size=16).hexdigest()}"
