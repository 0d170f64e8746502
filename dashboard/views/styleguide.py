"""The style guide: every part of the look in every state, for owners."""

from datetime import timedelta
from decimal import Decimal

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard import access
from dashboard.page_request import PageRequest
from dashboard.pages.glossary import GLOSSARY
from dashboard.views.style_samples import draw_charts, draw_gauges, draw_timelines

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


@require_safe
def styleguide(request: PageRequest) -> HttpResponse:
    access.require_owner(request.actor)
    now = timezone.now()
    context = {
        "levels": LEVELS,
        "token_kinds": TOKEN_KINDS,
        "gauges": draw_gauges(),
        "timelines": draw_timelines(is_long="long" in request.GET),
        "charts": draw_charts(),
        "hit_rates": [
            [0.2, 0.81, 0.9, 0.93, 0.71, 0.4, 0.88, 0.93],
            [0.97, None, None, 0.96, 0.98],
            [0.914],
            [],
        ],
        "terms": list(GLOSSARY),
        "picked": request.GET.get("call", ""),
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
    if request.htmx and "call" in request.GET:
        return render(request, "styleguide/_picked.html", context)
    return render(request, "styleguide/page.html", context)
