"""Puts observations in one order, whatever order they arrived in: each line after its parent, otherwise by time.

Clients write some lines with an earlier time than that of their parent; copies, pushes and rewritten files arrive in
any order. Neither file nor arrival decides, so the same lines always give the same timeline.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from compaction.timeline.observations import Observation
from compaction.timeline.sources import choose_more_complete

NO_TIME = datetime.min.replace(tzinfo=UTC)
# The latest time among a line and its ancestors, how many of them are known, the line's own time and id.
_SortKey = tuple[datetime, int, datetime, str]
_ROOT: _SortKey = (NO_TIME, 0, NO_TIME, "")


def order_observations(observations: Iterable[Observation]) -> list[Observation]:
    """Return each line no earlier than its parent; lines of one moment by their distance from the root, then by id."""
    by_id = {line.id: line for line in observations}
    if _are_ordered(by_id):
        return list(by_id.values())
    keys: dict[str, _SortKey] = {}
    for line_id, line in by_id.items():
        above = keys.get(line.parent) if line.parent else _ROOT
        if above is not None and line_id not in keys:  # nearly always: lines are written after their parents
            at = line.at or NO_TIME
            keys[line_id] = (max(above[0], at), above[1] + 1, at, line_id)
        else:
            _add_keys(line, by_id, keys)
    return [by_id[key[3]] for key in sorted(keys.values())]


def _are_ordered(by_id: Mapping[str, Observation]) -> bool:
    """Return whether the lines are certainly in order already, as those of most sessions are: each later than the line
    before it or its child, and later than a parent elsewhere."""
    before_id, before_at = "", NO_TIME
    for line_id, line in by_id.items():
        at, parent = line.at, line.parent
        if at is None:
            return False
        if parent != before_id or at < before_at:
            above = by_id.get(parent) if parent else None
            if at <= before_at or (above is not None and (above.at is None or above.at >= at)):
                return False
        before_id, before_at = line_id, at
    return True


def _add_keys(line: Observation, by_id: Mapping[str, Observation], keys: dict[str, _SortKey]) -> None:
    """Add the sort keys of a line and of those of its ancestors that have none yet."""
    path: dict[str, Observation] = {}
    walker: Observation | None = line
    while walker is not None and walker.id not in keys and walker.id not in path:
        path[walker.id] = walker
        walker = by_id.get(walker.parent) if walker.parent else None
    above = keys.get(walker.id, _ROOT) if walker is not None else _ROOT
    for step in reversed(path.values()):
        at = step.at or NO_TIME
        above = keys[step.id] = (max(above[0], at), above[1] + 1, at, step.id)


def split_by_thread(lines: Iterable[Observation]) -> dict[str | None, list[Observation]]:
    """Return ordered lines by thread: None is the main conversation; old sidechains go by the line they start at."""
    main: list[Observation] = []
    threads: dict[str | None, list[Observation]] = {None: main}
    roots: dict[str, str] = {}
    for line in lines:
        if not line.is_sidechain:
            main.append(line)
            continue
        thread_id = line.agent_id
        if thread_id is None:
            thread_id = roots[line.id] = roots.get(line.parent or "", line.id)
        threads.setdefault(thread_id, []).append(line)
    return threads


def merge_observations(stored: Mapping[str, Observation], arrived: Sequence[Observation]) -> dict[str, Observation]:
    """Return the arrived lines that are new or more complete than what is stored, by id."""
    better: dict[str, Observation] = {}
    for line in arrived:
        current = better.get(line.id) or stored.get(line.id)
        if current is None or (current != line and choose_more_complete(current, line) is line):
            better[line.id] = line
    return better
