"""One conversation of a coding agent, with the totals that lists and gauges read, and its threads.

Every figure here is worked out from the session's facts and written by dashboard.ingest.record alone.
"""

from typing import Any

from django.db import models
from django.db.models import Case, F, Value, When
from django.db.models.functions import Cast, Concat, NullIf
from django.utils import timezone

from dashboard.models.sender import Collector, Sender
from dashboard.models.team import Team
from dashboard.models.user import User

LEVELS = ("not known", "ok", "warning", "error", "auto-compact", "blocking")  # as compaction.context.thresholds.Level


def usd_field(**options: Any) -> "models.DecimalField[Any, Any]":
    """Dollars: a single cache read of a small model costs a hundred-millionth."""
    return models.DecimalField(max_digits=18, decimal_places=8, **options)


def _as_float(column: str) -> Cast:
    """Not as a whole number: a sum of the largest counts that are stored may be too large for one."""
    return Cast(column, models.FloatField())


_PROMPT_TOKENS = NullIf(
    _as_float("input_tokens") + _as_float("read_tokens") + _as_float("write_5m_tokens") + _as_float("write_1h_tokens"),
    Value(0.0),
)


class AgentSession(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="sessions")
    external_id = models.CharField(max_length=200)
    owner = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="sessions")
    # The owner's name, kept when the account is gone; of a session without an owner, the name its telemetry reports.
    developer = models.CharField(max_length=150, blank=True)
    # What created it where no account did, and may go on sending to it.
    collector = models.CharField(max_length=6, choices=Collector.choices, default=Collector.NONE, blank=True)
    sources = models.JSONField(default=list)
    forked_from = models.CharField(max_length=200, blank=True)  # external id of the session whose lines it continues

    title = models.CharField(max_length=300, blank=True)
    project_path = models.CharField(max_length=1000, blank=True)
    project = models.CharField(max_length=200, blank=True)  # last part of the path
    branch = models.CharField(max_length=300, blank=True)
    model = models.CharField(max_length=200, blank=True)
    client_version = models.CharField(max_length=60, blank=True)
    is_claude_code = models.BooleanField(default=True)  # else of another agent: dashboard.ingest.picture.tellers
    is_window_inferred = models.BooleanField(default=False)  # the model's name says long window because a call had it

    started_at = models.DateTimeField(null=True, blank=True)
    last_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)  # the client said so
    warm_until = models.DateTimeField(null=True, blank=True)  # of the main thread's cache

    window_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    reported_window_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    auto_line_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    context_tokens = models.PositiveBigIntegerField(default=0)  # measured by the last call, and what arrived since
    pending_tokens = models.PositiveBigIntegerField(default=0)  # the estimated part of it: what arrived since
    peak_tokens = models.PositiveBigIntegerField(default=0)
    level = models.CharField(max_length=12, default="not known")
    level_rank = models.PositiveSmallIntegerField(default=0)
    percent_left = models.PositiveSmallIntegerField(null=True, blank=True)
    is_soon = models.BooleanField(default=False)  # a few calls or turns from the auto line
    # Ranks by urgency: as the level, but soon stands between error and auto-compact whatever the level.
    risk_rank = models.GeneratedField(
        expression=Case(
            When(is_soon=True, then=Value(2 * LEVELS.index("auto-compact") - 1)), default=2 * F("level_rank")
        ),
        output_field=models.PositiveSmallIntegerField(),
        db_persist=True,
    )
    forecast = models.JSONField(null=True, blank=True)  # calls, turns, minutes to the auto line as [low, likely, high]
    calls_left = models.PositiveBigIntegerField(
        null=True, blank=True
    )  # the likely calls of the forecast; 0 at the line
    recent_hits = models.JSONField(
        default=list
    )  # hit rate in percent of the last calls of the main thread, oldest first

    input_tokens = models.PositiveBigIntegerField(default=0)
    read_tokens = models.PositiveBigIntegerField(default=0)
    write_5m_tokens = models.PositiveBigIntegerField(default=0)
    write_1h_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    # Tokens read from the cache per million prompt tokens; None before the first prompt.
    hit_rate_ppm = models.GeneratedField(
        expression=Cast(Value(1e6) * _as_float("read_tokens") / _PROMPT_TOKENS, models.PositiveIntegerField()),
        output_field=models.PositiveIntegerField(null=True),
        db_persist=True,
    )
    spent_usd = usd_field(default=0)
    lost_usd = usd_field(default=0)
    avoidable_usd = usd_field(default=0)  # net: of its breaks
    client_cost_usd = usd_field(null=True, blank=True)  # the client's own total, where it tells one
    client_tokens = models.PositiveBigIntegerField(null=True, blank=True)  # of all kinds, by the client's metrics

    call_count = models.PositiveIntegerField(default=0)
    unpriced_count = models.PositiveIntegerField(default=0)  # calls whose model has no known price
    turn_count = models.PositiveIntegerField(default=0)
    break_count = models.PositiveIntegerField(default=0)
    rebuild_count = models.PositiveIntegerField(default=0)
    compaction_count = models.PositiveIntegerField(default=0)
    mid_task_count = models.PositiveIntegerField(default=0)
    micro_count = models.PositiveIntegerField(default=0)
    entry_count = models.PositiveIntegerField(default=0)
    problem_count = models.PositiveIntegerField(default=0)  # lines that could not be read
    # The earliest version of the reader among its lines (READING_VERSION in the engine); None: no lines.
    reading_version = models.PositiveSmallIntegerField(null=True, blank=True)
    projection_version = models.PositiveSmallIntegerField(default=1)  # which made these figures of its lines
    has_content = models.BooleanField(default=False)
    content_removed_at = models.DateTimeField(null=True, blank=True)  # by the team's retention, all of it or a part

    version = models.PositiveBigIntegerField(default=0)  # raised by every change: open pages ask for what is newer
    price_version = models.PositiveIntegerField(default=0)  # of its team's own prices when its dollars were worked out
    policy_version = models.PositiveIntegerField(default=0)  # the team policy its level was worked out with

    # What everybody who sees the session may find it by. The title is content: it is searched apart.
    search_text = models.GeneratedField(
        expression=Concat(
            F("project"), Value("\n"), F("developer"), Value("\n"), F("branch"), Value("\n"), F("external_id")
        ),
        output_field=models.TextField(),
        db_persist=True,
    )

    class Meta:
        constraints = [
            # Two files of one session arriving at once must not make two sessions; serves the lookup of every batch.
            models.UniqueConstraint(fields=["team", "external_id"], name="session_once_per_team"),
            models.CheckConstraint(condition=models.Q(level__in=LEVELS), name="session_known_level"),
        ]
        indexes = [
            # The closed list of sorts of the sessions page, each with the id that makes the order total. Behind it the
            # filters that go along with a sort: where all matches are at its far end (the sessions of this week, those
            # with the longest cold cache first), the walk to them reads the index alone (bench.pages: 112 -> 15 ms).
            # Level and time also serve what the overview counts of the last day and shows of it by risk.
            models.Index(fields=["team", "-last_at", "-id", "level_rank", "is_soon"], name="session_by_activity"),
            models.Index(
                fields=["team", "-risk_rank", "percent_left", "-id", "last_at", "level_rank", "is_soon"],
                name="session_by_risk",
            ),
            models.Index(fields=["team", "-lost_usd", "-id", "break_count"], name="session_by_loss"),
            models.Index(fields=["team", "-spent_usd", "-id"], name="session_by_spend"),
            models.Index(fields=["team", "-compaction_count", "-id"], name="session_by_compactions"),
            # Walked backwards for the fewest calls first: SQLite judges an index by its first thousand entries, which
            # would all lack a value, and would not choose it.
            models.Index(fields=["team", "-calls_left", "id", "level_rank", "is_soon"], name="session_by_calls_left"),
            models.Index(fields=["team", "-hit_rate_ppm", "-id", "break_count"], name="session_by_hit_rate"),
            models.Index(fields=["team", "-warm_until", "-id", "last_at"], name="session_by_warmth"),
            # Filters by developer, by project and by model, newest first; the first two are sorts as well.
            models.Index(fields=["team", "developer", "-last_at", "-id"], name="session_of_developer"),
            models.Index(fields=["team", "project", "-last_at", "-id"], name="session_of_project"),
            models.Index(fields=["team", "model", "-last_at", "-id"], name="session_of_model"),
            # Every filter of the sessions page: few matches are found, and many noticed, without touching a row.
            models.Index(
                fields=[
                    "team",
                    "project",
                    "model",
                    "developer",
                    "level_rank",
                    "is_soon",
                    "break_count",
                    "last_at",
                    "id",
                ],
                name="session_by_filter",
            ),
            # What was forked from a session, for its page.
            models.Index(fields=["team", "forked_from"], name="session_forks"),
            # A changed policy: which sessions were levelled with an older one.
            models.Index(fields=["team", "policy_version", "id"], name="session_by_policy"),
        ]

    def __str__(self) -> str:
        return f"{self.external_id} of {self.team}"

    def accepts_telemetry_from(self, sender: Sender) -> bool:
        return sender.may_continue(owner_pk=self.owner_id, collector=self.collector)


class Thread(models.Model):
    """The main conversation (`agent_id` empty) or one sub-agent of a session."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="threads")
    agent_id = models.CharField(max_length=200, blank=True)
    agent_type = models.CharField(max_length=200, blank=True)
    description = models.CharField(max_length=300, blank=True)  # empty where no content is stored
    model = models.CharField(max_length=200, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    last_at = models.DateTimeField(null=True, blank=True)
    window_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    context_tokens = models.PositiveBigIntegerField(default=0)
    pending_tokens = models.PositiveBigIntegerField(default=0)
    peak_tokens = models.PositiveBigIntegerField(default=0)
    call_count = models.PositiveIntegerField(default=0)
    spent_usd = usd_field(default=0)
    lost_usd = usd_field(default=0)

    class Meta:
        constraints = [
            # Serves the session page, and the race of a session's file with a sub-agent's file.
            models.UniqueConstraint(fields=["session", "agent_id"], name="thread_once_per_session"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id or 'main'} of session {self.session_id}"


class SessionHour(models.Model):
    """What one session cost in one hour (UTC): days of any time zone are sums of these, without touching calls."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="hours")
    hour_at = models.DateTimeField()
    call_count = models.PositiveIntegerField(default=0)
    input_tokens = models.PositiveBigIntegerField(default=0)  # all that was sent: plain, read and written
    read_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    spent_usd = usd_field(default=0)
    lost_usd = usd_field(default=0)
    break_count = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "hour_at"], name="session_hour_once"),
        ]
        indexes = [
            # Spend, loss and hit rate per day of a team, summed from the index alone.
            models.Index(
                fields=["team", "hour_at", "spent_usd", "lost_usd", "input_tokens", "read_tokens"],
                name="session_hour_sums",
            ),
        ]

    def __str__(self) -> str:
        return f"session {self.session_id} at {self.hour_at:%Y-%m-%d %H}h"
