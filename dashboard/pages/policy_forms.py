"""The forms of a team's policy: thresholds with rows of models, and storage.

They only collect; what makes sense is judged by dashboard.policies, whose sentences come back to the fields.
"""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.forms import BaseFormSet, formset_factory

from compaction.context.margins import Preset
from compaction.context.policy import Policy
from dashboard.policies.changes import LONGEST_NOTE, MOST_DAYS
from dashboard.policies.in_force import TeamSettings
from dashboard.policies.thresholds import MOST_MODELS, SETTINGS, find_faults

_AUTO = {"": "on", "off": "off"}
_AUTO_OF_MODEL = {"": "same as above", "on": "on", "off": "off"}
_PRESETS = {
    Preset.CLIENT.value: "client: the thresholds of Claude Code",
    Preset.EARLY.value: "early: warns 20,000 tokens earlier",
}


def _figure_field(label: str) -> forms.CharField:
    # Text and not a number field: "20,000" is how people write it, and a bad figure keeps what was typed.
    widget = forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off", "class": "figure-input"})
    return forms.CharField(label=label, required=False, max_length=40, widget=widget)


def make_note_field() -> forms.CharField:
    """Return the field that every page of a policy ends with."""
    return forms.CharField(label="Change note (optional)", required=False, max_length=LONGEST_NOTE)


class DescribedForm(forms.Form):
    """Help and errors of every field have fixed ids: a preview fills the errors in while the form is being typed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            target = f"id_{self.add_prefix(name)}"
            helped = f"{target}_helptext " if field.help_text else ""
            field.widget.attrs["aria-describedby"] = f"{helped}{target}_errors"


class ValuesForm(DescribedForm):
    """What can be set for all models and for one."""

    warning_margin_tokens = _figure_field("Warning")
    error_margin_tokens = _figure_field("Error")
    auto_margin_tokens = _figure_field("Auto-compact")
    blocking_margin_tokens = _figure_field("Blocking")
    auto_percent = _figure_field("Auto-compact at % of usable window")
    window_tokens = _figure_field("Window")
    max_output_tokens = _figure_field("Max output")
    reserve_tokens = _figure_field("Reserve")
    is_auto_enabled = forms.ChoiceField(label="Auto-compact is", required=False, choices=list(_AUTO_OF_MODEL.items()))

    def values(self) -> dict[str, str]:
        return {setting: str(self[setting].data or "").strip() for setting in SETTINGS}


class ThresholdsForm(ValuesForm):
    # What an empty field means, and what the figure counts.
    _SAID = {
        "warning_margin_tokens": ("by preset", "Tokens below auto-compact. Preset client: 20,000, early: 40,000."),
        "error_margin_tokens": ("20,000", "Tokens below auto-compact."),
        "auto_margin_tokens": ("13,000", "Tokens below the usable window."),
        "blocking_margin_tokens": ("3,000", "Tokens below the usable window."),
        "auto_percent": ("not used", "1 to 100. The lower of this and the margin applies."),
        "window_tokens": ("the model's", "Applies to every model, regardless of what it reports."),
        "max_output_tokens": ("the model's", "Maximum tokens in one response."),
        "reserve_tokens": ("max output", "Reserved for the summary. Empty: max output, at most 20,000."),
        "is_auto_enabled": ("", "Choose off if your clients have auto-compact disabled."),
    }
    preset = forms.ChoiceField(label="Preset", required=False, choices=list(_PRESETS.items()), widget=forms.RadioSelect)
    note = make_note_field()
    base_version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, (placeholder, words) in self._SAID.items():
            self.fields[name].help_text = words
            target = f"id_{self.add_prefix(name)}"
            described = {"placeholder": placeholder} if placeholder else {}
            self.fields[name].widget.attrs |= {**described, "aria-describedby": f"{target}_helptext {target}_errors"}
        self.fields["is_auto_enabled"].choices = list(_AUTO.items())  # type: ignore[attr-defined]


class ModelForm(ValuesForm):
    model = forms.CharField(label="Model", required=False, max_length=200)
    remove = forms.BooleanField(label="Remove", required=False)


def _days_field(label: str, help_text: str) -> forms.IntegerField:
    widget = forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off", "class": "figure-input"})
    widget.attrs["placeholder"] = "no limit"
    return forms.IntegerField(
        label=label, required=False, min_value=1, max_value=MOST_DAYS, widget=widget, help_text=help_text
    )


class StorageForm(DescribedForm):
    stores_content = forms.ChoiceField(label="Content", choices=[("no", "no"), ("yes", "yes")])
    content_days = _days_field(
        "Keep content for (days)", "Content is deleted this many days after it was recorded. Metrics are kept."
    )
    metrics_days = _days_field(
        "Keep metrics for (days)", "A session and its metrics are deleted this many days after its last activity."
    )
    note = make_note_field()
    base_version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)


ModelRows = formset_factory(ModelForm, extra=1, max_num=MOST_MODELS, absolute_max=MOST_MODELS)


class PolicyDraft:
    """One part of a team's policy as a form: what a person sent, or what is in force. It knows where it began."""

    form: forms.Form

    @property
    def base_version(self) -> int:
        return int(self.form.cleaned_data.get("base_version") or 0)

    @property
    def note(self) -> str:
        return str(self.form.cleaned_data.get("note", ""))

    def look_at(self, settings: TeamSettings) -> None:
        """What was typed stays; it is based on the newest version now, so that saving again is a decision."""
        self.form.data = {**self.form.data.dict(), "base_version": str(settings.version)}  # type: ignore[attr-defined]


class ThresholdsDraft(PolicyDraft):
    """The whole form of thresholds; bound to what a person sent, or showing what is in force."""

    form: ThresholdsForm

    def __init__(self, data: Mapping[str, Any] | None, settings: TeamSettings) -> None:
        own, models = dict(settings.thresholds), settings.thresholds.get("models") or {}
        first = {"preset": Preset.CLIENT.value, **_as_texts(own), "base_version": settings.version}
        rows = [{"model": name, **_as_texts(given)} for name, given in _items(models)]
        self.form = ThresholdsForm(data, initial=first)
        self.models: BaseFormSet[ModelForm] = ModelRows(data, initial=rows, prefix="models")
        self.policy: Policy | None = None
        self.thresholds: dict[str, object] = {}
        if data is not None:
            self._judge()

    def _judge(self) -> None:
        rows = self._filled_rows()
        is_readable = self.form.is_valid() and self.models.is_valid()
        given = {str(row["model"].data).strip(): row for row in rows}
        for row in rows:
            name = str(row["model"].data or "").strip()
            if given.get(name) is not row:
                row.add_error("model", f"The model {name} is listed twice." if name else "Enter the model's name.")
                is_readable = False
        values: dict[str, object] = {**self.form.values(), "preset": self.form["preset"].data}
        values["models"] = {name: row.values() for name, row in given.items()}
        faults = list(find_faults(values))
        for fault in faults:
            form: forms.Form = self.form if fault.model is None else given[fault.model]
            field = "model" if fault.setting == "models" and fault.model is not None else fault.setting
            form.add_error(field if field in form.fields else None, fault.sentence)
        if is_readable and not faults:
            self.thresholds, self.policy = values, Policy.from_team_values(values)

    def _filled_rows(self) -> list[ModelForm]:
        """A row without anything in it is no model; neither is one to be removed."""
        kept = [row for row in self.models if not row["remove"].data]
        return [row for row in kept if any([str(row["model"].data or "").strip(), *row.values().values()])]


class StorageDraft(PolicyDraft):
    """The whole form of storage."""

    def __init__(self, data: Mapping[str, Any] | None, settings: TeamSettings) -> None:
        first = {
            "stores_content": "yes" if settings.stores_content else "no",
            "content_days": settings.content_days,
            "metrics_days": settings.metrics_days,
            "base_version": settings.version,
        }
        self.form = StorageForm(data, initial=first)
        self.is_valid = data is not None and self.form.is_valid()

    @property
    def stores_content(self) -> bool:
        return str(self.form["stores_content"].value()) == "yes"

    @property
    def content_days(self) -> int | None:
        """None: without end."""
        days: int | None = self.form.cleaned_data.get("content_days")
        return days

    @property
    def metrics_days(self) -> int | None:
        days: int | None = self.form.cleaned_data.get("metrics_days")
        return days


def _as_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Stored values as a person would type them."""
    texts: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, bool):
            texts[name] = "on" if value else "off"
        elif isinstance(value, int):
            texts[name] = f"{value:,}"
        elif name != "models":
            texts[name] = str(value)
    return texts


def _items(models: object) -> list[tuple[str, Mapping[str, Any]]]:
    return list(models.items()) if isinstance(models, Mapping) else []
