"""What a person picks before a compaction: kind, thread, range, instructions, summariser, model."""

from dataclasses import dataclass

from compaction.compactors.outcome import Trigger
from dashboard.models import RunKind, SummarizerName

LONGEST_INSTRUCTIONS = 10_000  # characters
AUTOMATIC = "auto"  # the source of runs that nobody asked for
MESSAGES = "messages"  # the source of runs whose conversation an agent sent for them


@dataclass(frozen=True, kw_only=True)
class RunChoices:
    """`pivot_uuid` is an entry of the thread, for partial kinds. `model`: empty for the team's choice.
    `accept_difference`: a person has confirmed that the stored lines do not add up to the measured context."""

    kind: RunKind = RunKind.FULL
    summarizer: SummarizerName = SummarizerName.EXTRACTIVE
    agent_id: str = ""
    pivot_uuid: str = ""
    instructions: str = ""
    model: str = ""
    trigger: Trigger = Trigger.MANUAL
    accept_difference: bool = False


class RunRefused(Exception):
    """The run cannot be started as asked. The message is a sentence for the person; `code` is for programs."""

    def __init__(self, code: str, sentence: str, **figures: object) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.figures = figures
