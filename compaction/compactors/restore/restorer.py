"""What comes back after a compaction, in the client's order: files, todos, plan, skills, agents, tools.

Everything is found in the transcript itself. By default nothing is opened; a FileSource is the operator's opt-in.
What hooks leave behind comes last of all and is put there by the run.
"""

from collections.abc import Sequence
from datetime import datetime

from compaction.activity.tool_calls import read_activity
from compaction.compactors.outcome import RestoredContext
from compaction.compactors.restore.agents import restore_agents
from compaction.compactors.restore.budget import RestoreBudgets, apply_total
from compaction.compactors.restore.files import restore_files
from compaction.compactors.restore.skills import restore_skills
from compaction.compactors.restore.todos_and_plan import restore_plan, restore_todos
from compaction.compactors.restore.tools import restore_tools
from compaction.ports import FileSource
from compaction.transcripts.entries import Entry


class ContextRestorer:
    """Finds what has to come back. Budgets and the source of files are bound here; see the Restore protocol."""

    def __init__(self, *, budgets: RestoreBudgets | None = None, source: FileSource | None = None) -> None:
        self._budgets = budgets or RestoreBudgets()
        self._source = source

    def __call__(self, entries: Sequence[Entry], kept: Sequence[Entry], *, now: datetime) -> RestoredContext:
        """`entries` is the whole thread before the compaction, `kept` what stays visible word for word."""
        work = read_activity(entries)
        budgets = self._budgets
        items = [
            *restore_files(entries, kept, work, budgets=budgets, source=self._source, now=now),
            *restore_todos(entries, kept, work),
            *restore_plan(entries, kept, work),
            *restore_skills(entries, kept, work, budgets),
            *restore_agents(entries, work),
            *restore_tools(entries, kept, budgets),
        ]
        if budgets.overall_tokens is not None:
            items = apply_total(items, budgets.overall_tokens, "everything that comes back")
        return RestoredContext(tuple(items))
