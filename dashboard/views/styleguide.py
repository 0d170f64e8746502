"""The style guide: every part of the look in every state, for owners."""

from datetime import timedelta
from decimal import Decimal

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard import access
from dashboard.charts import Chart, Line, Point, Share, calls_chart, gauge_chart, shares_chart
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


@require_safe
def styleguide(request: PageRequest) -> HttpResponse:
    access.require_owner(request.actor)
    now = timezone.now()
    context = {
        "levels": LEVELS,
        "token_kinds": TOKEN_KINDS,
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
