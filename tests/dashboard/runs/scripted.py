"""A summariser with a model that is none: it answers what a test has written down, and shows what it was asked."""

from collections.abc import Callable
from dataclasses import dataclass, field

from compaction.compactors.summary.prompt import SECTIONS
from compaction.errors import RunError
from compaction.ports import Monitor, SummaryAnswer, SummaryRequest
from compaction.transcripts.entries import Usage
from dashboard.models import Team
from dashboard.runs.attempts import NoteAttempt
from dashboard.runs.fork_terms import ForkTerms

Step = SummaryAnswer | RunError | Callable[[SummaryRequest, Monitor], SummaryAnswer]


def write_summary(words: str = "The harbour chart is drawn.") -> str:
    told = "\n\n".join(f"{number}. {name}:\n   {words}" for number, name in enumerate(SECTIONS, start=1))
    return f"<analysis>Thought about it.</analysis>\n<summary>\n{told}\n</summary>"


def answer(text: str | None = None, *, stop: str = "end_turn", sent: int = 50_000, output: int = 900) -> SummaryAnswer:
    return SummaryAnswer(
        text=write_summary() if text is None else text,
        stop_reason=stop,
        usage=Usage(input_tokens=sent, output_tokens=output),
        model="claude-haiku-4-5",
        message_id="msg_summary",
        duration_seconds=2.5,
    )


@dataclass
class Script:
    """The steps to come, and the requests that were made. A script at its end answers well."""

    steps: list[Step] = field(default_factory=list)
    requests: list[SummaryRequest] = field(default_factory=list)

    def summarize(self, request: SummaryRequest, monitor: Monitor) -> SummaryAnswer:
        self.requests.append(request)
        step = self.steps.pop(0) if self.steps else answer()
        if isinstance(step, RunError):
            raise step
        return step if isinstance(step, SummaryAnswer) else step(request, monitor)


script = Script()


def open_scripted(_team: Team, _note_attempt: NoteAttempt, _terms: ForkTerms) -> Script:
    return script
