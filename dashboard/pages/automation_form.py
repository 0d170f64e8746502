"""The form of a team's automatic mode. It collects; dashboard.automation.wishes judges, and its sentences come here."""

from collections.abc import Mapping
from typing import Any

from django import forms

from dashboard.automation.wishes import LONGEST_TEMPLATE, NotesWriter, Wish, WishChange, find_faults
from dashboard.models import AutomaticMode, SummarizerName
from dashboard.pages.policy_forms import DescribedForm

MODE_SENTENCES = {
    AutomaticMode.OFF: ("Off", "Crossings are shown on gauges only."),
    AutomaticMode.SUGGEST: (
        "Suggest",
        "The overview and the session page show that a compaction is due. A person starts it.",
    ),
    AutomaticMode.RUN: (
        "Run",
        "Plimsoll compacts the session once per crossing: it clears old tool results if that is enough, otherwise uses "
        "the session's notes, otherwise writes a summary. The original session is unchanged.",
    ),
}
SUMMARIZER_CHOICES = [
    (SummarizerName.EXTRACTIVE.value, "Extractive: runs locally, free"),
    (SummarizerName.CLAUDE.value, "Claude: uses the team's API key, within its daily cap"),
]
NOTES_CHOICES = [
    (NotesWriter.OFF.value, "Off"),
    (NotesWriter.EXTRACTIVE.value, "Extractive: runs locally, free"),
    (NotesWriter.CLAUDE.value, "Claude: uses the team's API key, within its daily cap"),
]


class AutomationForm(DescribedForm):
    mode = forms.ChoiceField(label="When a session crosses its auto-compact threshold", choices=AutomaticMode.choices)
    summarizer = forms.ChoiceField(
        label="Summariser for automatic runs",
        choices=SUMMARIZER_CHOICES,
        help_text="Used only if neither clearing nor notes are enough.",
    )
    notes_writer = forms.ChoiceField(
        label="Writer of session notes",
        choices=NOTES_CHOICES,
        help_text="Requires stored content. A compaction from notes needs no model when the threshold is crossed.",
    )
    notes_template = forms.CharField(
        label="Sections of the notes",
        required=False,
        max_length=LONGEST_TEMPLATE + 100,
        widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false"}),
        help_text="A heading (# Name) and a description in italics for each section. Empty: the default sections.",
    )
    stamp = forms.CharField(required=False, max_length=60, widget=forms.HiddenInput)


class AutomationDraft:
    """Bound to what a person sent, or showing what is in force. `change` is None where something is wrong."""

    def __init__(self, data: Mapping[str, Any] | None, wish: Wish) -> None:
        first = {
            "mode": wish.mode.value,
            "summarizer": wish.summarizer.value,
            "notes_writer": wish.notes_writer.value,
            "notes_template": wish.notes_template if wish.has_own_template else "",
            "stamp": wish.stamp,
        }
        self.form = AutomationForm(data, initial=first)
        self.modes = [(mode, *MODE_SENTENCES[mode], self.form["mode"].value() == mode.value) for mode in AutomaticMode]
        self.change: WishChange | None = None
        if data is not None and self.form.is_valid():
            self._judge(self.form.cleaned_data)

    @property
    def stamp(self) -> str:
        return str(self.form.cleaned_data.get("stamp", ""))

    def _judge(self, given: Mapping[str, Any]) -> None:
        change = WishChange(
            mode=AutomaticMode(given["mode"]),
            summarizer=SummarizerName(given["summarizer"]),
            notes_writer=NotesWriter(given["notes_writer"]),
            notes_template=given["notes_template"],
        )
        faults = list(find_faults(change))
        for fault in faults:
            self.form.add_error(fault.field, fault.sentence)
        self.change = None if faults else change
