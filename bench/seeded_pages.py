"""A database full of made-up sessions and calls for bench/pages.py: the same rows for the same arguments."""

import random
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import connection, models, transaction
from django.utils import timezone

from compaction.context.forecast import NotEnoughData, Pace
from compaction.context.policy import Policy
from compaction.context.windows import ModelInUse
from dashboard.ingest.hour_sums import add_up_changes
from dashboard.models import (
    AgentSession,
    CacheBreak,
    Membership,
    ObservedCompaction,
    Role,
    Scope,
    SessionHour,
    Team,
    Thread,
    User,
)
from dashboard.session_forecasts import serialize_forecast
from dashboard.session_levels import work_out_level

DAYS = 90
BATCH = 1000
BIG_SESSION_CALLS = 2000
PROJECTS = [f"{first}-{second}" for first in ("web", "api", "data", "infra", "docs", "mobile", "search", "billing",
            "ledger", "harbour") for second in ("shop", "core", "tools", "batch", "admin", "gateway", "lake", "tests",
            "worker", "kit", "forms", "reports")]  # fmt: skip
MODELS = ("claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-5-5", "claude-haiku-4-5", "claude-sonnet-5-5")
VERSIONS = ("2.1.20", "2.1.100", "2.1.197", "2.1.325")
VERBS = ("Fix", "Refactor", "Explain", "Migrate", "Write", "Speed up", "Review", "Test", "Document", "Debug")
THINGS = ("login tests", "billing to Decimal", "search index", "OTLP receiver", "API docs", "retry loop",
          "dark theme", "cache layer", "import of files", "release notes", "flaky upload", "memory leak",
          "French numbers")  # fmt: skip
RARE_WORD = "cormorant"  # in the title of one session in a thousand
CAUSES = ("ttl_expired_5m", "tools_changed", "model_changed", "unexplained")
PACE = Pace(900, calls_per_turn=6.0, seconds_per_call=20.0)
TOO_FEW_CALLS = NotEnoughData("No forecast yet.")
USD = Decimal("0.00000001")
KEY_SCOPES = (Scope.READ, Scope.CONTENT)


@dataclass(frozen=True)
class Place:
    team: Team
    owner: User
    big_session_pk: int


def find_place() -> Place | None:
    """Of a database that was seeded before."""
    team = Team.objects.filter(slug="harbour").first()
    if team is None:
        return None
    return Place(team, User.objects.get(username="dev-0"), AgentSession.objects.order_by("pk")[0].pk)


def seed(sessions: int, calls: int) -> Place:
    """Empty database in, full one out."""
    team = Team.objects.create(name="Harbour", slug="harbour")
    people = [User.objects.create(username=f"dev-{number}") for number in range(40)]
    Membership.objects.bulk_create(
        Membership(team=team, user=user, role=Role.OWNER if user == people[0] else Role.MEMBER, content_grant=True)
        for user in people
    )
    now = timezone.now()
    chance = random.Random(8)
    per_session = max(1, calls // sessions)
    _insert(AgentSession, (_make_session(chance, now, team, people, per_session) for _ in range(sessions)))
    big = AgentSession.objects.order_by("pk")[0]
    AgentSession.objects.filter(pk=big.pk).update(call_count=BIG_SESSION_CALLS)
    _insert(Thread, _make_threads())
    _insert(SessionHour, _make_hours(chance))
    _insert(CacheBreak, _make_breaks(chance))
    _insert(ObservedCompaction, _make_compactions(chance))
    _insert_calls()
    _gather_statistics()
    return Place(team, people[0], big.pk)


def add_up_hours() -> None:
    """As the job of that name does every few minutes."""
    count = BATCH
    while count == BATCH:
        with transaction.atomic():
            count = add_up_changes(BATCH)


def _insert(model: type[models.Model], rows: Iterator[models.Model]) -> None:
    started, count, batch = time.perf_counter(), 0, []
    with transaction.atomic():
        for row in rows:
            batch.append(row)
            if len(batch) == BATCH:
                model._base_manager.bulk_create(batch)  # noqa: SLF001
                count, batch = count + BATCH, []
        model._base_manager.bulk_create(batch)  # noqa: SLF001
    seconds = time.perf_counter() - started
    print(f"  {count + len(batch):>9,} {model.__name__} in {seconds:.0f} s", file=sys.stderr)


def _make_session(
    chance: random.Random, now: datetime, team: Team, people: list[User], per_session: int
) -> AgentSession:
    last_at = now - timedelta(days=DAYS * chance.random() ** 1.3, seconds=chance.random() * 60)
    model = MODELS[min(int(chance.expovariate(1)), len(MODELS) - 1)]
    version = chance.choice(VERSIONS)
    owner = people[min(int(chance.expovariate(0.1)), len(people) - 1)]
    project = PROJECTS[min(int(chance.expovariate(0.06)), len(PROJECTS) - 1)]
    context = int(chance.betavariate(1.5, 3) * 185_000)
    level = work_out_level(Policy(), ModelInUse(model, client_version=version), context)
    forecast = serialize_forecast(PACE if chance.random() < 0.8 else TOO_FEW_CALLS, level.auto_line_tokens, context)
    breaks = max(0, int(chance.gauss(0, 2)))
    call_count = max(1, int(chance.gauss(per_session, per_session / 4)))
    title = f"{chance.choice(VERBS)} {chance.choice(THINGS)}"
    spent = Decimal(chance.random() * call_count * 0.05).quantize(USD)
    return AgentSession(
        team=team,
        external_id=f"{chance.getrandbits(128):032x}",
        owner=owner,
        developer=owner.username,
        sources=["follow"],
        title=f"{title} {RARE_WORD}" if chance.random() < 0.001 else title,
        project_path=f"/home/{owner.username}/{project}",
        project=project,
        branch=chance.choice(("main", "main", "fix/login", "feat/fts", "release")),
        model=model,
        client_version=version,
        started_at=last_at - timedelta(minutes=call_count),
        last_at=last_at,
        warm_until=last_at + timedelta(minutes=5) if chance.random() < 0.9 else None,
        context_tokens=context,
        peak_tokens=context,
        **asdict(level),
        **forecast._asdict(),
        recent_hits=[min(99, int(chance.gauss(90, 8))) for _ in range(24)],
        read_tokens=call_count * 40_000,
        input_tokens=int((chance.betavariate(2, 12) + (breaks > 0)) * call_count * 60_000),
        output_tokens=call_count * 300,
        spent_usd=spent,
        lost_usd=(spent / 8).quantize(USD) if breaks else 0,
        call_count=call_count,
        turn_count=call_count // 5,
        break_count=breaks,
        compaction_count=max(0, int(chance.gauss(0, 1))),
        has_content=True,
        version=1,
    )


def _make_threads() -> Iterator[Thread]:
    for session in _seeded_sessions():
        yield Thread(session_id=session.pk, model=session.model, call_count=session.call_count)


def _make_hours(chance: random.Random) -> Iterator[SessionHour]:
    for session in _seeded_sessions():
        hour_at = session.last_at.replace(minute=0, second=0, microsecond=0)
        for back in range(chance.choice((1, 2, 3))):
            yield SessionHour(
                team_id=session.team_id,
                session_id=session.pk,
                hour_at=hour_at - timedelta(hours=back),
                call_count=10,
                input_tokens=500_000,
                read_tokens=450_000,
                spent_usd=session.spent_usd,
                lost_usd=session.lost_usd,
            )


def _make_breaks(chance: random.Random) -> Iterator[CacheBreak]:
    for session in _seeded_sessions():
        for number in range(session.break_count):
            yield CacheBreak(
                team_id=session.team_id,
                session_id=session.pk,
                call_id=f"msg_{session.pk}_{number}",
                call_number=number,
                kind="break",
                at=session.last_at - timedelta(minutes=number),
                model=session.model,
                cause=chance.choice(CAUSES),
                grade="inferred",
                lost_tokens=90_000,
                lost_usd=session.lost_usd / session.break_count,
                is_avoidable=number % 2 == 0,
                avoidable_usd=session.lost_usd / session.break_count / 2 if number % 2 == 0 else None,
            )


def _make_compactions(chance: random.Random) -> Iterator[ObservedCompaction]:
    for session in _seeded_sessions():
        for number in range(session.compaction_count):
            yield ObservedCompaction(
                team_id=session.team_id,
                session_id=session.pk,
                entry_uuid=f"{session.pk}-{number}",
                kind="full",
                trigger=chance.choice(("auto", "manual")),
                at=session.last_at - timedelta(minutes=30 * number),
                before_tokens=167_000,
                after_tokens=51_000,
            )


def _seeded_sessions() -> Iterator[AgentSession]:
    columns = ("team_id", "last_at", "model", "spent_usd", "lost_usd", "break_count", "compaction_count", "call_count")
    return AgentSession.objects.only(*columns).order_by("pk").iterator(chunk_size=BATCH)


def _insert_calls() -> None:
    """By the database itself: a Python row takes longer than all its indexes."""
    started = time.perf_counter()
    is_sqlite = connection.vendor == "sqlite"
    minutes = "s.call_count - n.number"
    at = f"datetime(s.last_at, '-' || ({minutes}) || ' minutes')" if is_sqlite else f"s.last_at - ({minutes}) * interval '1 minute'"  # fmt: skip # noqa: E501
    call_id = (
        "printf('msg_%%08d_%%05d', s.id, n.number)" if is_sqlite
        else "'msg_' || lpad(s.id::text, 8, '0') || '_' || lpad(n.number::text, 5, '0')"
    )  # fmt: skip
    true = "1" if is_sqlite else "true"
    with connection.cursor() as cursor:
        if is_sqlite:
            cursor.execute("PRAGMA cache_size = -400000")
            cursor.execute("PRAGMA synchronous = OFF")
        cursor.execute("CREATE TEMPORARY TABLE bench_numbers (number integer PRIMARY KEY)")
        cursor.execute(
            "INSERT INTO bench_numbers WITH RECURSIVE up(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < %s) "
            "SELECT n FROM up",
            [BIG_SESSION_CALLS],
        )
        cursor.execute(
            "INSERT INTO dashboard_apicall (team_id, session_id, agent_id, number, call_id, request_id, is_counted, "
            "at, turn, model, client_version, query_source, stop_reason, input_tokens, read_tokens, write_5m_tokens, "
            "write_1h_tokens, output_tokens, is_output_estimated, context_tokens, cost_usd, provenance, added, "
            "miss_reason, cleared_tokens) "
            f"SELECT s.team_id, s.id, '', n.number, {call_id}, '', {true}, {at}, n.number / 5, s.model, "
            "s.client_version, '', 'end_turn', 12, 40000, 1500, 0, 300, NOT " + true + ", "
            "20000 + 1500 * (n.number %% 90), 0.021, '{}', '', '', 0 "
            "FROM dashboard_agentsession s JOIN bench_numbers n ON n.number <= s.call_count ORDER BY s.id, n.number",
            [],
        )
        count = cursor.rowcount
    print(f"  {count:>9,} ApiCall in {time.perf_counter() - started:.0f} s", file=sys.stderr)


def _gather_statistics() -> None:
    """As housekeeping (SQLite) and autovacuum (PostgreSQL) do by themselves in time."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE" if connection.vendor == "sqlite" else "VACUUM ANALYZE")
