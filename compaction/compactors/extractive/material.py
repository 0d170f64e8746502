"""What the sections of a summary without a model are made of, read once from the entries."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compaction.activity.background_tasks import BackgroundTask, list_background_tasks
from compaction.activity.checks import Check, read_checks
from compaction.activity.commits import Commit, list_commits
from compaction.activity.excerpts import is_change
from compaction.activity.failures import Failure, find_failures
from compaction.activity.files import KnownFile, read_known_files
from compaction.activity.plans import PLAN_FOLDER, PlanState, read_plan
from compaction.activity.priorities import Priorities, read_priorities
from compaction.activity.sentences import list_prose
from compaction.activity.tickets import Ticket, TicketState, read_tickets
from compaction.activity.todos import Todo, read_todos
from compaction.activity.tool_calls import Activity, AssistantText, ToolCall, read_activity
from compaction.compactors.extractive.previous_summary import read_earlier_summary
from compaction.transcripts.client_protocol import AGENT_TOOLS, TOOL_ERROR, AttachmentKind, ToolName
from compaction.transcripts.entries import Entry
from compaction.transcripts.payloads import Attachment

_BACKGROUND_NOTE = 200  # characters of an output in which the client says that a command goes on in the background
_AGENT_ID = "agentId"
_MISTAKEN_LOOKS = ("Path does not exist", "File does not exist", "File has not been read yet", "No such tool")


@dataclass(frozen=True, slots=True)
class Material:
    """Everything that was said, done and shown, with the priorities of the person who asked for the summary."""

    work: Activity
    files: tuple[KnownFile, ...]
    todos: tuple[Todo, ...]
    failures: tuple[Failure, ...]
    commits: tuple[Commit, ...]
    tickets: tuple[Ticket, ...]
    checks: tuple[Check, ...]
    background_tasks: tuple[BackgroundTask, ...]
    plan_text: str
    plan_path: str | None
    priorities: Priorities
    cwd: str | None
    branch: str | None
    changes: tuple[ToolCall, ...]  # requests that changed a file, in order
    prose: dict[int, list[str]]  # of the agent's texts by place, filled when asked for

    def list_prose(self, remark: AssistantText) -> list[str]:
        """Return the sentences of a text of the agent without code, markup and filler."""
        if remark.place not in self.prose:
            self.prose[remark.place] = list_prose(remark.text)
        return self.prose[remark.place]

    @property
    def open_tickets(self) -> tuple[Ticket, ...]:
        """Tickets that were not closed, those in progress first."""
        waiting = [ticket for ticket in self.tickets if ticket.state is not TicketState.CLOSED]
        return tuple(sorted(waiting, key=lambda ticket: ticket.state is not TicketState.IN_PROGRESS))

    @property
    def closed_tickets(self) -> tuple[Ticket, ...]:
        """Tickets that are done."""
        return tuple(ticket for ticket in self.tickets if ticket.state is TicketState.CLOSED)

    @property
    def parent_ids(self) -> frozenset[str]:
        """Ids of tickets that have others under them."""
        return frozenset(ticket.root for ticket in self.tickets if ticket.root != ticket.id)

    @property
    def last_commit_place(self) -> int:
        """The index of the newest commit; -1 where none was made."""
        return self.commits[-1].place if self.commits else -1

    @property
    def is_tracking_commits(self) -> bool:
        """Whether a commit was made or tried, so that what is not committed is worth a word on each file."""
        return bool(self.commits)

    def find_remark_before(self, action: ToolCall) -> AssistantText | None:
        """Return the last text of the agent before this request, in the same turn."""
        index = bisect_right(self.work.remarks, action.place, key=lambda remark: remark.place) - 1
        remark = self.work.remarks[index] if index >= 0 else None
        return remark if remark is not None and remark.turn == action.turn else None

    def find_action_index(self, action: ToolCall) -> int:
        """Return where the request is among all requests."""
        index = bisect_left(self.work.actions, action.place, key=lambda each: each.place)
        while self.work.actions[index].use.id != action.use.id:
            index += 1
        return index

    def list_reported_failures(self) -> list[Failure]:
        """Return the failures worth a report: no slips of the agent, no mistaken look-ups."""
        return [failure for failure in self.failures if not failure.is_slip and not _is_mistaken_look(failure)]

    def list_own_texts(self) -> Iterator[str]:
        """Yield the texts in which terms of instructions are looked for.

        What was said, now and in an earlier summary, and which files, commands and tickets were used.
        """
        yield read_earlier_summary(self.work.earlier_summary)
        yield from (message.text for message in self.work.said)
        yield from (remark.text for remark in self.work.remarks)
        for action in self.work.actions:
            yield action.path or action.command or ""
        yield from (ticket.title for ticket in self.tickets)


def read_material(entries: Sequence[Entry], *, instructions: str | None = None) -> Material:
    """Return the material of these entries, which are what the model sees."""
    work = read_activity(entries)
    plan = read_plan(entries, work) if _may_hold_plan(work) else PlanState()
    return Material(
        work=work,
        files=read_known_files(entries, work),
        todos=read_todos(entries, work),
        failures=find_failures(work),
        commits=list_commits(work),
        tickets=read_tickets(work),
        checks=read_checks(work),
        background_tasks=list_background_tasks(entries, work) if _may_hold_jobs(entries, work) else (),
        plan_text=plan.text,
        plan_path=plan.path,
        priorities=read_priorities(instructions),
        cwd=next((entry.cwd for entry in reversed(entries) if entry.cwd), None),
        branch=next((entry.git_branch for entry in reversed(entries) if entry.git_branch), None),
        changes=tuple(action for action in work.actions if is_change(action) and action.result is not None),
        prose={},
    )


def _may_hold_plan(work: Activity) -> bool:
    """Return whether the agent wrote a plan; one that came with a message is part of the message."""
    return any(
        action.name == ToolName.EXIT_PLAN_MODE or (action.path is not None and PLAN_FOLDER in action.path)
        for action in work.actions
    )


def _may_hold_jobs(entries: Sequence[Entry], work: Activity) -> bool:
    """Return whether anything was sent to the background; looking into every result for it takes long."""
    return any(
        action.use.input.get("run_in_background") is True
        or (action.command is not None and "background" in action.output[:_BACKGROUND_NOTE])
        or (action.name in AGENT_TOOLS and _AGENT_ID in action.output)
        for action in work.actions
    ) or any(
        isinstance(entry.payload, Attachment) and entry.payload.kind == AttachmentKind.TASK_STATUS for entry in entries
    )


def _is_mistaken_look(failure: Failure) -> bool:
    """Return whether a request only looked in the wrong place."""
    text = failure.action.output.removeprefix(f"<{TOOL_ERROR}>")
    return failure.action.command is None and any(words in text[:300] for words in _MISTAKEN_LOOKS)
