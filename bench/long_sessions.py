"""Stores sessions with the given numbers of calls in a data folder, for measurements of long pages.

Run: PLIMSOLL_DATA=folder python -m bench.long_sessions 5 500 3000 20000. Prints the address of each session. Numbers of
tokens are random, so that the pages compress as real ones do; one call in a hundred broke the cache.
"""

import os
import random
import sys
from datetime import timedelta
from decimal import Decimal

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
django.setup()

from django.utils import timezone  # noqa: E402 (Django is set up first)

from dashboard.models import AgentSession, ApiCall, CacheBreak, Team  # noqa: E402
from tests.builders import make_session  # noqa: E402
from tests.session_builders import add_break, make_calls  # noqa: E402

BREAK_EVERY, BATCH = 100, 1000
WINDOW_TOKENS = 160_000


def store_session(team: Team, count: int) -> AgentSession:
    chance = random.Random(count)
    session = make_session(team, f"long-{count}", title=f"A session of {count:,} calls", call_count=count)
    calls = make_calls(session, count)
    started = timezone.now() - timedelta(seconds=30 * count)
    context = 20_000
    for index, call in enumerate(calls):
        context = 20_000 if context > WINDOW_TOKENS else context + int(chance.expovariate(1 / 900))
        call.write_5m_tokens = min(context, int(chance.expovariate(1 / 1200)))
        call.read_tokens, call.context_tokens = context - call.write_5m_tokens, context
        call.output_tokens = int(chance.expovariate(1 / 400))
        call.cost_usd = Decimal(chance.randrange(10_000, 900_000)).scaleb(-6)
        call.at = started + timedelta(seconds=30 * index + chance.randrange(20))
        call.ended_at = call.at + timedelta(seconds=chance.randrange(1, 9))
    columns = ("write_5m_tokens", "read_tokens", "context_tokens", "output_tokens", "cost_usd", "at", "ended_at")
    ApiCall.objects.bulk_update(calls, columns, batch_size=BATCH)
    for call in calls[BREAK_EVERY::BREAK_EVERY]:
        add_break(call, lost_usd=Decimal(chance.randrange(10_000, 900_000)).scaleb(-6))
    lost = CacheBreak.objects.filter(session=session).count()
    AgentSession.objects.filter(pk=session.pk).update(break_count=lost, context_tokens=context, turn_count=count // 10)
    return session


if __name__ == "__main__":
    team = Team.objects.order_by("pk")[0]
    for count in sys.argv[1:]:
        print(f"/sessions/{store_session(team, int(count)).pk}/", flush=True)
