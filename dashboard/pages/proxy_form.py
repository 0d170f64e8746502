"""The form of what the proxy adds to a team's requests. It only collects; dashboard.policies judges."""

from collections.abc import Mapping
from typing import Any

from django import forms

from compaction.errors import BadPolicy
from dashboard.pages.policy_forms import DescribedForm, PolicyDraft, make_note_field
from dashboard.policies.in_force import TeamSettings
from dashboard.policies.proxy_additions import ProxyAdditions, check_additions

_FIGURE = {"inputmode": "numeric", "autocomplete": "off", "class": "figure-input small-input"}


class FigureField(forms.IntegerField):
    """20,000 is how people write it."""

    def to_python(self, value: Any) -> int | None:
        return super().to_python(value.replace(",", "") if isinstance(value, str) else value)

    def prepare_value(self, value: Any) -> Any:
        return f"{value:,}" if isinstance(value, int) else value


class ProxyForm(DescribedForm):
    asks_diagnosis = forms.BooleanField(
        label="Request cache diagnosis",
        required=False,
        help_text="The API compares each request with the previous one, and its diagnosis takes precedence.",
    )
    clears_results = forms.BooleanField(
        label="Clear old tool results",
        required=False,
        help_text="The API removes them from prompts larger than the size below. The client still sends all of them.",
    )
    clear_above_tokens = FigureField(label="Clear above (tokens)", widget=forms.TextInput(attrs=_FIGURE))
    kept_results = FigureField(label="Results to keep", widget=forms.TextInput(attrs=_FIGURE))
    least_cleared_tokens = FigureField(
        label="Minimum to clear (tokens)",
        widget=forms.TextInput(attrs=_FIGURE),
        help_text="Clearing rewrites the cache after that point, so smaller amounts are not cleared. 0: any amount.",
    )
    note = make_note_field()
    base_version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)


class ProxyDraft(PolicyDraft):
    """The form; bound to what a person sent, or showing what is in force. `additions` once they make sense."""

    def __init__(self, data: Mapping[str, Any] | None, settings: TeamSettings) -> None:
        names = ProxyAdditions.__slots__
        first = {name: getattr(settings.proxy_additions, name) for name in names} | {"base_version": settings.version}
        self.form = ProxyForm(data, initial=first)
        self.additions: ProxyAdditions | None = None
        if data is not None and self.form.is_valid():
            try:
                self.additions = check_additions(
                    ProxyAdditions(**{name: self.form.cleaned_data[name] for name in names})
                )
            except BadPolicy as fault:
                self.form.add_error(fault.setting, str(fault))
