"""The material of an extractive summary, read once from the entries."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compaction.activity.background_tasks import BackgroundTask, list_background_tasks
from compaction.activity.commits_and_checks import CheckRun, Commit, list_commits, read_checks
from compaction.activity.failures import Failure, read_failures
from compaction.activity.files import TouchedFile, read_touched_files
from compaction.activity.plans import PLAN_FOLDER, PlanState, read_plan
from compaction.activity.priorities import Priorities, read_priorities
from compaction.activity.sentences import list_prose
from compaction.activity.tickets import Ticket, TicketState, read_tickets
from compaction.activity.todos import Todo, read_todos
from compaction.activity.tool_calls import Activity, AssistantText, ToolCall, read_activity
from compaction.activity.user_messages import UserMessage, UserMessageKind
from compaction.compactors.extractive.previous_summary import read_previous_summary
from compaction.transcripts.client_protocol import AGENT_TOOLS, TOOL_ERROR, AttachmentKind, ToolName
from compaction.transcripts.entries import Entry
from compaction.transcripts.payloads import Attachment

_BACKGROUND_CHARACTERS = 200  # of an output in which the client writes that a command goes on in the background
_AGENT_ID = "agentId"
_MISTAKEN_LOOKUPS = ("Path does not exist", "File does not exist", "File has not been read yet", "No such tool")


@dataclass(frozen=True, slots=True)
class Material:
    """Facts of a stretch of conversation, and the priorities in the instructions for the summary."""

    activity: Activity
    files: tuple[TouchedFile, ...]
    todos: tuple[Todo, ...]
    failures: tuple[Failure, ...]
    commits: tuple[Commit, ...]
    tickets: tuple[Ticket, ...]
    checks: tuple[CheckRun, ...]
    background_tasks: tuple[BackgroundTask, ...]
    plan_text: str
    plan_path: str | None
    priorities: Priorities
    cwd: str | None
    branch: str | None
    changes: tuple[ToolCall, ...]  # requests that changed a file, in order
    prose: dict[int, list[str]]  # of the agent's texts by index of the entry, filled on demand

    def list_prose(self, assistant_text: AssistantText) -> list[str]:
        """Return the sentences of a text of the agent without code, markup and filler."""
        if assistant_text.entry_index not in self.prose:
            self.prose[assistant_text.entry_index] = list_prose(assistant_text.text)
        return self.prose[assistant_text.entry_index]

    @property
    def requests(self) -> list[UserMessage]:
        """The messages that are no answers to questions."""
        return [message for message in self.activity.user_messages if message.kind is not UserMessageKind.ANSWER]

    @property
    def open_tickets(self) -> tuple[Ticket, ...]:
        """Tickets that were not closed, those in progress first."""
        tickets = [ticket for ticket in self.tickets if ticket.state is not TicketState.CLOSED]
        return tuple(sorted(tickets, key=lambda ticket: ticket.state is not TicketState.IN_PROGRESS))

    @property
    def closed_tickets(self) -> tuple[Ticket, ...]:
        """Tickets that are done."""
        return tuple(ticket for ticket in self.tickets if ticket.state is TicketState.CLOSED)

    @property
    def parent_ids(self) -> frozenset[str]:
        """Ids of tickets that have others under them."""
        return frozenset(ticket.root for ticket in self.tickets if ticket.root != ticket.id)

    @property
    def last_text_index(self) -> int:
        """The index of the entry with the agent's last text; -1 where it wrote none."""
        return self.activity.assistant_texts[-1].entry_index if self.activity.assistant_texts else -1

    @property
    def last_commit_index(self) -> int:
        """The index of the entry with the newest commit; -1 where none was made."""
        return self.commits[-1].entry_index if self.commits else -1

    @property
    def is_tracking_commits(self) -> bool:
        """Return whether commits are made at all, so that each file may say whether its changes are committed."""
        return bool(self.commits)

    def find_text_before(self, tool_call: ToolCall) -> AssistantText | None:
        """Return the last text of the agent before this request, in the same turn."""
        texts = self.activity.assistant_texts
        index = bisect_right(texts, tool_call.entry_index, key=lambda text: text.entry_index) - 1
        return texts[index] if index >= 0 and texts[index].turn == tool_call.turn else None

    def list_next_tool_calls(self, tool_call: ToolCall, count: int) -> Sequence[ToolCall]:
        """Return the tool calls after this one, at most `count`."""
        tool_calls = self.activity.tool_calls
        index = bisect_left(tool_calls, tool_call.entry_index, key=lambda call: call.entry_index)
        while tool_calls[index].use.id != tool_call.use.id:
            index += 1
        return tool_calls[index + 1 : index + 1 + count]

    def list_reported_failures(self) -> list[Failure]:
        """Return the failures worth a report: no malformed requests corrected later, no look-ups in the wrong place."""
        return [
            failure
            for failure in self.failures
            if not failure.is_corrected_request and not _is_mistaken_lookup(failure)
        ]

    def list_searched_texts(self) -> Iterator[str]:
        """Yield the texts in which terms of instructions are searched.

        These are the previous summary, messages, texts of the agent, files, commands and titles of tickets.
        """
        yield read_previous_summary(self.activity.previous_summary)
        yield from (message.text for message in self.activity.messages)
        for tool_call in self.activity.tool_calls:
            yield tool_call.path or tool_call.command or ""
        yield from (ticket.title for ticket in self.tickets)


def read_material(entries: Sequence[Entry], *, instructions: str | None = None) -> Material:
    """Return the material of these entries, which are what the model sees."""
    activity = read_activity(entries)
    plan = read_plan(entries, activity) if _may_hold_plan(activity) else PlanState()
    return Material(
        activity=activity,
        files=read_touched_files(entries, activity),
        todos=read_todos(entries, activity),
        failures=read_failures(activity),
        commits=list_commits(activity),
        tickets=read_tickets(activity),
        checks=read_checks(activity),
        background_tasks=list_background_tasks(entries, activity) if _may_hold_tasks(entries, activity) else (),
        plan_text=plan.text,
        plan_path=plan.path,
        priorities=read_priorities(instructions),
        cwd=next((entry.cwd for entry in reversed(entries) if entry.cwd), None),
        branch=next((entry.git_branch for entry in reversed(entries) if entry.git_branch), None),
        changes=tuple(
            tool_call for tool_call in activity.tool_calls if tool_call.is_file_change and tool_call.result is not None
        ),
        prose={},
    )


def _may_hold_plan(activity: Activity) -> bool:
    """Return whether the agent wrote a plan; one that came with a message is part of the message."""
    return any(
        tool_call.name == ToolName.EXIT_PLAN_MODE or (tool_call.path is not None and PLAN_FOLDER in tool_call.path)
        for tool_call in activity.tool_calls
    )


def _may_hold_tasks(entries: Sequence[Entry], activity: Activity) -> bool:
    """Return whether anything was sent to the background; looking into every result for it takes long."""
    return any(
        tool_call.use.input.get("run_in_background") is True
        or (tool_call.command is not None and "background" in tool_call.output[:_BACKGROUND_CHARACTERS])
        or (tool_call.name in AGENT_TOOLS and _AGENT_ID in tool_call.output)
        for tool_call in activity.tool_calls
    ) or any(
        isinstance(entry.payload, Attachment) and entry.payload.kind == AttachmentKind.TASK_STATUS for entry in entries
    )


def _is_mistaken_lookup(failure: Failure) -> bool:
    """Return whether a request only read from a wrong path."""
    text = failure.tool_call.output.removeprefix(f"<{TOOL_ERROR}>")
    return failure.tool_call.command is None and any(words in text[:300] for words in _MISTAKEN_LOOKUPS)
