"""The form before a compaction: kind, thread, range, instructions, summariser, model. It collects; runs judges."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from dashboard.models import CompactionRun, RunKind, SummarizerName
from dashboard.runs.choices import LONGEST_INSTRUCTIONS, RunChoices

KIND_SENTENCES = {
    RunKind.FULL: (
        "Full",
        "The whole conversation becomes one summary. Recent files, todos and plans are restored after it.",
    ),
    RunKind.FROM: (
        "From a message on",
        "Messages before it are kept verbatim; the message and all after it become a summary.",
    ),
    RunKind.UP_TO: (
        "Up to a message",
        "All before it becomes a summary; the message and all after it are kept verbatim.",
    ),
    RunKind.NOTES: (
        "From the notes",
        "The notes taken during the session become the summary; messages after them are kept. Runs locally. Free.",
    ),
    RunKind.MICRO_SIZE: (
        "Clear old tool results",
        "Replaces the oldest tool results by one line each until the rest is small. Runs locally. Free.",
    ),
    RunKind.MICRO_IDLE: (
        "Clear all but the last 5 tool results",
        "For a session whose cache is cold: nothing cached is lost by it. Runs locally. Free.",
    ),
}
SUMMARIZER_SENTENCES = {
    SummarizerName.EXTRACTIVE: (
        "Extractive",
        "Selects sentences, files, errors and todos from the conversation. Runs locally. Free.",
    ),
    SummarizerName.CLAUDE: (
        "Claude",
        "A model writes the summary. The conversation is sent to the Anthropic API and costs what the preview says.",
    ),
    SummarizerName.NATIVE: (
        "The API itself",
        "A beta: the Anthropic API compacts and signs a block that only it takes back, in the messages of your own "
        "agent. Claude Code resumes from the words in it at best.",
    ),
}


class RunForm(forms.Form):
    """`threads` are agent ids and their names. The pivot's radio buttons are drawn by the page."""

    kind = forms.ChoiceField(choices=RunKind.choices)
    agent_id = forms.ChoiceField(label="Conversation", required=False)
    pivot_uuid = forms.CharField(required=False, max_length=200)
    instructions = forms.CharField(
        label="Instructions",
        required=False,
        max_length=LONGEST_INSTRUCTIONS,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=(
            "What the summary must keep or may leave out, such as “keep the API decisions”. "
            "Without a model, the words you name are given priority; other wishes need a model."
        ),
    )
    summarizer = forms.ChoiceField(required=False, choices=[(name.value, name.label) for name in SUMMARIZER_SENTENCES])
    model = forms.CharField(
        label="Model",
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off", "spellcheck": "false"}),
        help_text="Empty: the team's choice, then the model of the session.",
    )

    accept_difference = forms.BooleanField(required=False)

    def __init__(self, *args: Any, threads: Sequence[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["agent_id"].choices = list(threads)  # type: ignore[attr-defined]

    def read_choices(self, kind: RunKind | None = None) -> RunChoices | None:
        """Return the choices, with another kind where one is given; None while the form is not valid."""
        if not self.is_valid():
            return None
        given: Mapping[str, Any] = self.cleaned_data
        kind = kind or RunKind(given["kind"])
        summarizer = SummarizerName(given["summarizer"] or SummarizerName.EXTRACTIVE)
        return RunChoices(
            kind=kind,
            summarizer=SummarizerName.NONE if kind.asks_nobody else summarizer,
            agent_id=given["agent_id"],
            pivot_uuid=given["pivot_uuid"] if kind.needs_pivot else "",
            instructions="" if kind.asks_nobody else given["instructions"].strip(),
            model=given["model"].strip() if summarizer.is_paid and not kind.asks_nobody else "",
            accept_difference=given["accept_difference"],
        )


def choose_as_before(run: CompactionRun, *, reads_content: bool) -> dict[str, str]:
    """The choices of an earlier run; its instructions are content."""
    summarizer = SummarizerName.EXTRACTIVE if run.summarizer == SummarizerName.NONE else run.summarizer
    return {
        "kind": run.kind,
        "agent_id": run.agent_id,
        "pivot_uuid": run.pivot_uuid,
        "instructions": run.instructions if reads_content else "",
        "summarizer": summarizer,
        "model": run.model,
    }
