"""Restores context after a compaction, in the client's order: files, todos, plan, skills, agents, tools.

Everything is read from the transcript. By default no file is opened; a FileSource is the operator's opt-in. The run
appends the texts of hooks after these items.
"""

from collections.abc import Sequence
from datetime import datetime

from compaction.activity.tool_calls import read_activity
from compaction.compactors.restore.agents import restore_agents
from compaction.compactors.restore.budget import RestoreBudgets, apply_total
from compaction.compactors.restore.files import restore_files
from compaction.compactors.restore.items import RestoredContext
from compaction.compactors.restore.skills import restore_skills
from compaction.compactors.restore.todos_and_plan import restore_plan, restore_todos
from compaction.compactors.restore.tools import restore_tools
from compaction.ports import FileSource
from compaction.transcripts.entries import Entry


class ContextRestorer:
    """A Restore with its budgets and its source of files."""

    def __init__(self, *, budgets: RestoreBudgets | None = None, source: FileSource | None = None) -> None:
        self._budgets = budgets or RestoreBudgets()
        self._source = source

    def __call__(self, entries: Sequence[Entry], kept: Sequence[Entry], *, now: datetime) -> RestoredContext:
        """Return the items. `entries` is the whole thread before the compaction, `kept` what stays verbatim."""
        activity = read_activity(entries)
        budgets = self._budgets
        items = [
            *restore_files(entries, kept, activity, budgets=budgets, source=self._source, now=now),
            *restore_todos(entries, kept, activity),
            *restore_plan(entries, kept, activity),
            *restore_skills(entries, kept, activity, budgets),
            *restore_agents(entries, activity),
            *restore_tools(entries, kept, budgets),
        ]
        if budgets.overall_tokens is not None:
            items = apply_total(items, budgets.overall_tokens, "all restored items")
        return RestoredContext(tuple(items))
