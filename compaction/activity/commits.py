"""Commits made through the shell: what they say, and which changes came after the last one."""

import re
from dataclasses import dataclass
from datetime import datetime

from compaction.activity.failures import read_failure
from compaction.activity.tool_calls import Activity

_COMMIT = re.compile(r"\bgit\b[^\n|;&]{0,80}\bcommit\b")
_MADE = re.compile(r"^\[([^\]\n]{1,120}?) ([0-9a-f]{6,40})\] (.{1,300})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit as git reported it."""

    subject: str
    revision: str
    place: int
    entry_uuid: str | None
    command: str = ""
    at: datetime | None = None


def is_commit_attempt(command: str) -> bool:
    """Return whether the command asks git for a commit."""
    return bool(_COMMIT.search(command))


def list_commits(work: Activity) -> tuple[Commit, ...]:
    """The commits that git confirmed, in order."""
    commits = []
    for action in work.actions:
        if (
            action.command is None
            or not is_commit_attempt(action.command)
            or (action.is_refused and read_failure(action))
        ):
            continue
        for _, revision, subject in _MADE.findall(action.output):
            commits.append(
                Commit(subject.strip(), revision, action.place, action.entry.uuid, action.command, action.entry.at)
            )
    return tuple(commits)
