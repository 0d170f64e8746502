"""The forms of the page Redaction: the team's own patterns with a text to try, and a report of a false redaction.

They only collect; what makes sense is judged by dashboard.policies, whose sentences come back to the fields.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django import forms
from django.core.validators import MaxLengthValidator
from django.forms import BaseFormSet, formset_factory

from dashboard.ingest.redaction.own_patterns import MAX_LENGTH, BadPattern, compile_all, compile_own
from dashboard.pages.policy_forms import DescribedForm, PolicyDraft, make_note_field
from dashboard.policies.changes import MOST_PATTERNS
from dashboard.policies.in_force import TeamSettings
from dashboard.policies.redaction_reports import LONGEST_EXAMPLE, LONGEST_NOTE
from dashboard.policies.redaction_rules import TeamRule

SAMPLE_LENGTH = 20_000
_TOO_LONG = f"The text has %(show_value)d characters; the limit is {SAMPLE_LENGTH:,}. Test a part of it."


class PatternForm(DescribedForm):
    name = forms.CharField(label="Name", required=False, max_length=40)
    pattern = forms.CharField(
        label="Pattern",
        required=False,
        max_length=MAX_LENGTH,
        widget=forms.TextInput(attrs={"class": "mono-input"}),
    )
    remove = forms.BooleanField(label="Remove", required=False)


PatternRows = formset_factory(PatternForm, extra=1, max_num=MOST_PATTERNS, absolute_max=MOST_PATTERNS)


class RedactionForm(DescribedForm):
    sample = forms.CharField(
        label="Sample text",
        required=False,
        # No maxlength: a browser would cut a pasted text without a word.
        validators=[MaxLengthValidator(SAMPLE_LENGTH, _TOO_LONG)],
        strip=False,
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono-input", "spellcheck": "false", "autocomplete": "off"}),
        help_text=f"Shown as it would be stored. Nothing is stored. At most {SAMPLE_LENGTH:,} characters.",
    )
    switched = forms.ChoiceField(label="Test with one rule turned on or off", required=False)
    note = make_note_field()
    base_version = forms.IntegerField(widget=forms.HiddenInput, min_value=0, required=False)

    def __init__(self, *args: Any, rules: Sequence[TeamRule], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        switchable = [rule for rule in rules if rule.can_be_switched]
        choices = [(rule.name, f"{rule.name} {'off' if rule.is_on else 'on'}") for rule in switchable]
        self.fields["switched"].choices = [("", "none: current settings"), *sorted(choices)]  # type: ignore[attr-defined]


class RedactionDraft(PolicyDraft):
    """What a person sent, or what is in force. `patterns` are those that can be used; members cannot change them."""

    form: RedactionForm

    def __init__(
        self,
        data: Mapping[str, Any] | None,
        settings: TeamSettings,
        rules: Sequence[TeamRule],
        *,
        has_patterns: bool,
    ) -> None:
        rows = [{"name": name, "pattern": pattern} for name, pattern in settings.own_patterns.items()]
        self.form = RedactionForm(data, rules=rules, initial={"base_version": settings.version})
        self.rows: BaseFormSet[PatternForm] = PatternRows(
            data if has_patterns else None, initial=rows, prefix="patterns"
        )
        self.patterns = dict(settings.own_patterns)
        self.is_valid = False
        self._settings = settings
        if data is not None:
            self.is_valid = self.form.is_valid()
            if has_patterns:
                self._judge()

    @property
    def sample(self) -> str:
        return str(self.form.cleaned_data.get("sample") or "")

    @property
    def disabled_rules(self) -> frozenset[str]:
        """The rules that are off in the try: those in force, with the one that was switched."""
        switched = self.form.cleaned_data.get("switched")
        return self._settings.disabled_rules ^ (frozenset({switched}) if switched else frozenset())

    def _judge(self) -> None:
        self.patterns = {}
        for row in self.rows:
            name, pattern = (str(row[field].data or "").strip() for field in ("name", "pattern"))
            if row["remove"].data or (not name and not pattern):
                continue
            for field, sentence in _judge_pattern(name, pattern, self.patterns):
                row.add_error(field, sentence)
            self.patterns.setdefault(name, pattern)
        self.is_valid = self.is_valid and self.rows.is_valid()
        if self.is_valid and self.patterns:
            self._check_together()

    def _check_together(self) -> None:
        try:
            compile_all(self.patterns)
        except BadPattern as refusal:
            last = next(row for row in reversed(list(self.rows)) if str(row["pattern"].data or "").strip())
            last.add_error("pattern", str(refusal))
            self.is_valid = False


def _judge_pattern(name: str, pattern: str, others: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if not name or not pattern:
        yield ("pattern", "Enter the pattern.") if name else ("name", "Enter a name.")
    elif name in others:
        yield "name", f"The name {name} is already in use."
    else:
        try:
            compile_own(name, pattern)
        except BadPattern as refusal:
            yield "name" if "The name" in str(refusal) else "pattern", str(refusal)


class SwitchForm(forms.Form):
    """One rule to be switched; whether there is such a rule is judged where the policy is changed."""

    rule = forms.CharField(max_length=40)
    state = forms.ChoiceField(choices=[("on", "on"), ("off", "off")])
    base_version = forms.IntegerField(min_value=0)


class ReportForm(DescribedForm):
    """A report of a false redaction."""

    rule = forms.ChoiceField(label="Rule", error_messages={"required": "Choose the rule that redacted too much."})
    note = forms.CharField(
        label="What was redacted (optional)",
        required=False,
        max_length=LONGEST_NOTE,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="In your words, such as “test names”. All rules apply before it is stored.",
    )
    example = forms.CharField(
        label="Example (optional)",
        required=False,
        max_length=LONGEST_EXAMPLE,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono-input", "spellcheck": "false"}),
        help_text="Stored as you paste it, redacted by all other rules only: do not paste secrets. The text "
        "behind a mark was never stored, so the report cannot include it.",
    )

    def __init__(self, *args: Any, rules: Sequence[TeamRule], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = sorted({rule.name for rule in rules})
        self.fields["rule"].choices = [("", "Choose a rule"), *((name, name) for name in names)]  # type: ignore[attr-defined]
