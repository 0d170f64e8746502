"""What the web process does to runs: starts them, many at once, and cancels them. Prints JSON."""

import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import django

django.setup()

from django.db import connections  # noqa: E402
from django.utils import timezone  # noqa: E402

from dashboard.automation.wishes import NotesWriter, WishChange, change_wish  # noqa: E402
from dashboard.hooks.webhooks import WebhookWish, add_webhook  # noqa: E402
from dashboard.ingest.intake import Origin, take_in  # noqa: E402
from dashboard.ingest.observed import Piece  # noqa: E402
from dashboard.models import (  # noqa: E402
    AgentSession,
    AutomaticMode,
    CompactionRun,
    DaySpend,
    HookEvent,
    RunState,
    SummarizerName,
)
from dashboard.runs.choices import RunChoices, RunRefused  # noqa: E402
from dashboard.runs.preview import preview_run  # noqa: E402
from dashboard.runs.start import cancel_run, start_run  # noqa: E402
from tests.builders import make_user  # noqa: E402
from tests.dashboard.automation.test_crossings import FULL, LiveTalk, make_storing_team  # noqa: E402
from tests.dashboard.runs.world import give_key, make_harbour, person, record_session, write_talk  # noqa: E402

RUSH = 20


def start(*instructions: str) -> dict[str, int]:
    """One run each, of a session of its own; their ids."""
    team = make_harbour()
    give_key(team)
    sessions = {told: record_session(team, write_talk(told)) for told in instructions}
    return {told: _start(session, told).pk for told, session in sessions.items()}


def _start(session: AgentSession, instructions: str = "") -> CompactionRun:
    choices = RunChoices(summarizer=SummarizerName.CLAUDE, instructions=instructions)
    return start_run(person("alice"), session, choices, source="page", now=timezone.now())


def cancel_all() -> int:
    runs = CompactionRun.objects.filter(state=RunState.RUNNING).select_related("session__team", "job")
    return sum(cancel_run(person("alice"), run, now=timezone.now()) for run in runs)


def read_latencies() -> list[float]:
    """Seconds from each cancel to the end of its run."""
    runs = CompactionRun.objects.filter(state=RunState.CANCELLED).values_list("finished_at", "job__cancel_requested_at")
    return [round((ended - asked).total_seconds(), 3) for ended, asked in runs if ended and asked]


def cross(webhook_url: str) -> int:
    """A session that crosses its line now, of a team that has notes taken, runs started and a webhook told."""
    team = make_storing_team("Harbour", AutomaticMode.RUN)
    change_wish(team, WishChange(notes_writer=NotesWriter.EXTRACTIVE), by=None)
    events = [HookEvent.LINE_CROSSED, HookEvent.RUN_FINISHED]
    wish = WebhookWish(name="bot", url=webhook_url, events=events)
    add_webhook(person("alice"), team, wish, by=make_user("alice"))
    talk = LiveTalk().grow(125_000, words=9_000).grow(140_000, words=9_000).grow(FULL)
    take_in(Origin(team, make_user("alice"), "follow"), Piece(talk.data, "talk", talk.session_id))
    return AgentSession.objects.get().pk


def rush() -> dict[str, object]:
    """Twenty starts at once under a cap that holds seven and a half of them."""
    team = make_harbour()
    sessions = [record_session(team, write_talk(f"talk-{number}")) for number in range(RUSH)]
    settings = give_key(team)
    choices = RunChoices(summarizer=SummarizerName.CLAUDE)
    settings.daily_cap_usd = preview_run(sessions[0], choices, now=timezone.now()).reserved_usd * Decimal("7.5")
    settings.save()

    def press(session: AgentSession) -> str:
        try:
            _start(session)
        except RunRefused as refusal:
            return refusal.code
        finally:
            connections.close_all()
        return "started"

    with ThreadPoolExecutor(RUSH) as pool:
        told = Counter(pool.map(press, sessions))
    day = DaySpend.objects.get()
    return {**told, "reserved_usd": str(day.reserved_usd), "cap_usd": str(settings.daily_cap_usd)}


ACTS = {"start": start, "cross": cross, "cancel_all": cancel_all, "read_latencies": read_latencies, "rush": rush}

if __name__ == "__main__":
    sys.stdout.write(json.dumps(ACTS[sys.argv[1]](*sys.argv[2:])))  # type: ignore[operator]
