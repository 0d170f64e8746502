"""The forms of a team's summariser: the key by itself, and everything else.

They only collect; what makes sense is judged by dashboard.runs.settings_changes, whose sentences come to the fields.
"""

from collections.abc import Mapping
from typing import Any

from django import forms

from compaction.llm.lookup import get_small_model
from dashboard.models import NativeForm
from dashboard.pages.policy_forms import DescribedForm
from dashboard.runs.settings_changes import LONGEST_KEY, SettingsChange, find_faults
from dashboard.runs.team_settings import NO_SMALL_MODEL, SummarizerChoice

OFFERED_LIST_ID = "offered-models"


def _model_field(label: str, help_text: str) -> forms.CharField:
    widget = forms.TextInput(
        attrs={"list": OFFERED_LIST_ID, "autocomplete": "off", "spellcheck": "false", "class": "mono-input"}
    )
    return forms.CharField(label=label, required=False, max_length=300, widget=widget, help_text=help_text)


class TeamKeyForm(DescribedForm):
    key = forms.CharField(
        label="API key",
        required=False,
        max_length=LONGEST_KEY + 100,
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "spellcheck": "false", "class": "mono-input"}),
        help_text="Stored encrypted. Only its last characters are shown again.",
    )


class SummarizerForm(DescribedForm):
    model = _model_field("Model", "For conversations too large for the small model. Empty: the session's own model.")
    small_model = _model_field("Small model", "Used first if the conversation fits its window.")
    allows_fork = forms.BooleanField(
        label="Reuse the session's prompt cache if possible",
        required=False,
        help_text="Repeats its last request, so the cache is read instead of rewritten. Uses the session's own model.",
    )
    native_form = forms.ChoiceField(
        label="API compaction",
        required=False,
        choices=[
            (NativeForm.OFF, "Off"),
            (NativeForm.ON_DEMAND, "On demand: requested when a run starts"),
            (NativeForm.THRESHOLD, "At a threshold: only for conversations of at least 50,000 tokens"),
        ],
        help_text="Beta. Runs may request a signed block from the API instead of a summary. Only the API can read the "
        "block, so Claude Code cannot resume from it.",
    )
    daily_cap_usd = forms.CharField(
        label="Daily cap (USD)",
        required=False,
        max_length=40,
        widget=forms.TextInput(
            attrs={"inputmode": "decimal", "autocomplete": "off", "class": "figure-input small-input"}
        ),
        help_text="Per UTC day. A run reserves its maximum cost before it starts. 0: no paid runs.",
    )
    stamp = forms.CharField(required=False, max_length=60, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        small = self.fields["small_model"]
        small.widget.attrs["placeholder"] = get_small_model()
        small.help_text += f" Empty: {get_small_model()}. “{NO_SMALL_MODEL}”: do not use one."
        self.fields["model"].widget.attrs["placeholder"] = "the session's own model"


class SummarizerDraft:
    """Everything but the key; bound to what a person sent, or showing what is in force."""

    def __init__(self, data: Mapping[str, Any] | None, choice: SummarizerChoice) -> None:
        first = {
            "model": choice.model,
            "small_model": choice.small_model_as_set,
            "allows_fork": choice.allows_fork,
            "native_form": choice.native_form,
            "daily_cap_usd": f"{choice.daily_cap_usd.normalize():f}",
            "stamp": choice.stamp,
        }
        self.form = SummarizerForm(data, initial=first)
        self.change: SettingsChange | None = None
        if data is not None:
            self._judge()

    @property
    def stamp(self) -> str:
        return str(self.form.cleaned_data.get("stamp", ""))

    def look_at(self, choice: SummarizerChoice) -> None:
        """What was typed stays; it is based on the newest settings now, so that saving again is a decision."""
        self.form.data = {**self.form.data.dict(), "stamp": choice.stamp}  # type: ignore[attr-defined]

    def _judge(self) -> None:
        typed = {name: str(self.form[name].data or "").strip() for name in ("model", "small_model", "daily_cap_usd")}
        is_readable = self.form.is_valid()
        change = SettingsChange(
            model=typed["model"],
            small_model=typed["small_model"],
            daily_cap_usd=typed["daily_cap_usd"],
            allows_fork=bool(self.form["allows_fork"].data),
            native_form=self._read_native_form(),
        )
        faults = list(find_faults(change))
        for fault in faults:
            self.form.add_error(fault.field if fault.field in self.form.fields else None, fault.sentence)
        self.change = change if is_readable and not faults else None

    def _read_native_form(self) -> NativeForm | None:
        """What is not sent stays as it is; what cannot be chosen is marked by the form."""
        given = str(self.form["native_form"].data or "")
        return NativeForm(given) if given in NativeForm.values else None
