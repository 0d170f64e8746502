"""The form of a new webhook. It only collects; dashboard.hooks judges."""

from collections.abc import Mapping

from django import forms

from dashboard.hooks.targets import LONGEST_URL
from dashboard.hooks.webhooks import WebhookWish
from dashboard.models import HookEvent

EVENT_HELP: Mapping[HookEvent, str] = {
    HookEvent.PRE_COMPACT: "asked before a summary is written; may add instructions or block",
    HookEvent.SESSION_START: "asked when the summary stands; may add a text for the model",
    HookEvent.POST_COMPACT: "asked last; may add a text for the model",
    HookEvent.RUN_FINISHED: "told when a compaction is done",
    HookEvent.RUN_FAILED: "told when one failed",
    HookEvent.LINE_CROSSED: "told when a session crosses its auto-compact line",
}


class WebhookForm(forms.Form):
    name = forms.CharField(label="Name", max_length=80, help_text="What listens there, such as “review bot”.")
    url = forms.CharField(
        label="Address",
        max_length=LONGEST_URL,
        widget=forms.URLInput(attrs={"placeholder": "https://hooks.example/plimsoll", "autocomplete": "off"}),
    )
    events = forms.MultipleChoiceField(
        label="Events",
        choices=[(event.value, f"{event.value}: {EVENT_HELP[event]}") for event in HookEvent],
        widget=forms.CheckboxSelectMultiple,
    )
    sends_words = forms.BooleanField(
        label="Send instructions and summaries too",
        required=False,
        help_text="Without it questions hold names and numbers alone. Notices never hold more.",
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
