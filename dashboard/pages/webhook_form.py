"""The form of a new webhook. It only collects; dashboard.hooks judges."""

from collections.abc import Mapping

from django import forms

from dashboard.hooks.targets import LONGEST_URL
from dashboard.hooks.webhooks import WebhookWish
from dashboard.models import HookEvent

EVENT_HELP: Mapping[HookEvent, str] = {
    HookEvent.PRE_COMPACT: "before a summary is written; can add instructions or block the compaction",
    HookEvent.SESSION_START: "after the summary is written; can add text for the model",
    HookEvent.POST_COMPACT: "last step of a compaction; can add text for the model",
    HookEvent.RUN_FINISHED: "a compaction finished",
    HookEvent.RUN_FAILED: "a compaction failed",
    HookEvent.LINE_CROSSED: "a session crossed its auto-compact threshold",
}


class WebhookForm(forms.Form):
    name = forms.CharField(label="Name", max_length=80, help_text="What receives the events, such as “review bot”.")
    url = forms.CharField(
        label="URL",
        max_length=LONGEST_URL,
        widget=forms.URLInput(attrs={"placeholder": "https://hooks.example/plimsoll", "autocomplete": "off"}),
    )
    events = forms.MultipleChoiceField(
        label="Events",
        choices=[(event.value, f"{event.value}: {EVENT_HELP[event]}") for event in HookEvent],
        widget=forms.CheckboxSelectMultiple,
    )
    sends_words = forms.BooleanField(
        label="Include instructions and summaries",
        required=False,
        help_text="Otherwise hook requests contain names and metrics only. Notifications never contain more.",
    )

    def __init__(self, *args: object, may_send_words: bool, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        if not may_send_words:
            del self.fields["sends_words"]

    def make_wish(self) -> WebhookWish:
        given = self.cleaned_data
        return WebhookWish(
            name=given["name"],
            url=given["url"],
            events=[HookEvent(event) for event in given["events"]],
            sends_words=given.get("sends_words", False),
        )
