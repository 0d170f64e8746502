"""The style guide: every part of the look in every state, for owners."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from compaction.context.forecast import CallPoint, forecast_line
from compaction.context.policy import Policy, Preset
from compaction.context.thresholds import draw_lines, read_level
from compaction.context.windows import ModelInUse
from dashboard import access
from dashboard.charts import Chart, Line, Point, Share, calls_chart, gauge_chart, shares_chart
from dashboard.gauge_bar import GaugeBar, draw_gauge
from dashboard.page_request import PageRequest

LINES = (
    Line("warning", "warning", 120_000),
    Line("error", "error", 147_000),
    Line("auto-compact", "auto", 167_000),
    Line("blocking", "blocking", 177_000),
)
POINTS = (
    Point(1, 0, 24_300),
    Point(2, 24_300, 3_100),
    Point(3, 27_400, 5_800),
    Point(4, 33_200, 2_400),
    Point(5, 4_100, 34_900),
    Point(6, 39_000, 1_900),
    Point(7, 40_900, 6_200),
    Point(8, 47_100, 2_700),
)
SHARES = (
    Share("tool results", 71_200),
    Share("tool definitions", 38_400),
    Share("files", 29_100),
    Share("system prompt", 14_800),
    Share("answers", 11_300),
    Share("prompts", 6_600),
)
LEVELS = ("ok", "warning", "error", "auto", "blocking")
TOKEN_KINDS = (
    ("read", "cache read"),
    ("write5m", "written, 5 min"),
    ("write1h", "written, 1 h"),
    ("fresh", "uncached"),
    ("output", "output"),
)


class SampleForm(forms.Form):
    """One field of every kind that pages use."""

    name = forms.CharField(max_length=40, help_text="What other people see.")
    note = forms.CharField(widget=forms.Textarea, required=False)
    role = forms.ChoiceField(choices=[("viewer", "Viewer"), ("member", "Member"), ("owner", "Owner")])
    plan = forms.ChoiceField(
        choices=[("5m", "5 minutes"), ("1h", "1 hour")],
        widget=forms.RadioSelect,
        help_text="How long the cache is kept.",
    )
    scopes = forms.MultipleChoiceField(
        choices=[("read", "read: read numbers"), ("ingest", "ingest: send telemetry")],
        widget=forms.CheckboxSelectMultiple,
    )
    agreed = forms.BooleanField(label="Keep the content of sessions", help_text="Numbers are always kept.")
    fixed = forms.CharField(label="Prefix", initial="plim_3f9a", disabled=True, help_text="Cannot be changed.")


def _charts() -> list[Chart]:
    return [
        gauge_chart("gauge-sample", used_tokens=171_400, window_tokens=200_000, lines=LINES),
        calls_chart("calls-sample", POINTS),
        shares_chart("shares-sample", SHARES),
    ]


def _draw_sample(
    policy: Policy, in_use: ModelInUse, used_tokens: int, *, peak_tokens: int | None = None, growth_tokens: int = 0
) -> GaugeBar:
    lines = draw_lines(policy, in_use)
    limit = lines.limit_tokens if lines else 0
    calls = [CallPoint(used_tokens - growth_tokens * back, turn=(40 - back) // 3) for back in reversed(range(40))]
    forecast = forecast_line(calls, limit) if growth_tokens else None
    return draw_gauge(lines, read_level(lines, used_tokens), forecast=forecast, peak_tokens=peak_tokens)


def _gauges() -> list[tuple[str, GaugeBar]]:
    """The gauge in every state it has."""
    client, early = Policy.from_preset(Preset.CLIENT), Policy.from_preset(Preset.EARLY)
    auto_off = replace(client, is_auto_enabled=False)
    short, newer = ModelInUse("claude-opus-4-5", client_version="2.1.100"), ModelInUse("claude-opus-4-5[1m]")
    not_seen = replace(short, client_version="2.1.325")
    return [
        ("Empty", _draw_sample(client, short, 0)),
        ("Half full", _draw_sample(client, short, 96_200, growth_tokens=1_800)),
        ("Early warning", _draw_sample(early, short, 131_000, peak_tokens=171_400, growth_tokens=2_100)),
        ("Warning and error fall together", _draw_sample(client, short, 158_600, growth_tokens=3_400)),
        ("Past the auto-compact line", _draw_sample(client, short, 171_400, growth_tokens=3_400)),
        ("Full", _draw_sample(client, short, 200_000)),
        ("Over the window", _draw_sample(client, short, 231_000)),
        ("Line not seen in force", _draw_sample(client, not_seen, 120_000, growth_tokens=900)),
        ("Auto-compact off", _draw_sample(auto_off, short, 120_000)),
        ("1M window", _draw_sample(client, newer, 412_000, growth_tokens=2_600)),
        ("8k window", _draw_sample(client, replace(short, reported_window_tokens=8_000), 3_000)),
        ("Window not known", _draw_sample(client, ModelInUse("some-other-model"), 48_200)),
    ]


@require_safe
def styleguide(request: PageRequest) -> HttpResponse:
    access.require_owner(request.actor)
    now = timezone.now()
    context = {
        "levels": LEVELS,
        "token_kinds": TOKEN_KINDS,
        "gauges": _gauges(),
        "charts": _charts(),
        "blank_form": SampleForm(prefix="blank"),
        "wrong_form": SampleForm({"wrong-role": "captain", "wrong-name": "x" * 41}, prefix="wrong"),
        "moments": [
            now - timedelta(seconds=8),
            now - timedelta(minutes=22),
            now - timedelta(days=3),
            now + timedelta(days=90),
        ],
        "amounts": [Decimal("1.2449"), Decimal("0.004"), Decimal("-12.5"), Decimal(48_200), None],
        "counts": [812, 167_000, 1_204_000, None],
    }
    return render(request, "styleguide/page.html", context)
