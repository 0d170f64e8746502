"""Facts in one order whatever order they came in: a line stands after the line it hangs under, else by time.

Clients write some lines with a time before that of the line above them; copies, pushes and rewritten files arrive in
any order. Neither file nor arrival decides here, so the same lines always tell the same story.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from compaction.timeline.observations import Observation, choose_more_complete

NO_TIME = datetime.min.replace(tzinfo=UTC)
# The latest time among a line and its ancestors, how many of them are known, the line's own time and id.
_Place = tuple[datetime, int, datetime, str]
_NO_PLACE: _Place = (NO_TIME, 0, NO_TIME, "")


def order_observations(facts: Iterable[Observation]) -> list[Observation]:
    """Each line no earlier than its parent; lines of one moment by their distance from the root, then by id."""
    by_id = {fact.id: fact for fact in facts}
    if _are_ordered(by_id):
        return list(by_id.values())
    places: dict[str, _Place] = {}
    for name, fact in by_id.items():
        above = places.get(fact.parent) if fact.parent else _NO_PLACE
        if above is not None and name not in places:  # nearly always: lines are written after their parents
            at = fact.at or NO_TIME
            places[name] = (max(above[0], at), above[1] + 1, at, name)
        else:
            _place_path(fact, by_id, places)
    return [by_id[place[3]] for place in sorted(places.values())]


def _are_ordered(by_id: Mapping[str, Observation]) -> bool:
    """Whether they certainly stand in their order, as those of most sessions do: each later than the one before it or
    its child, and later than a parent elsewhere."""
    before_id, before_at = "", NO_TIME
    for name, fact in by_id.items():
        at, parent = fact.at, fact.parent
        if at is None:
            return False
        if parent != before_id or at < before_at:
            above = by_id.get(parent) if parent else None
            if at <= before_at or (above is not None and (above.at is None or above.at >= at)):
                return False
        before_id, before_at = name, at
    return True


def _place_path(fact: Observation, by_id: Mapping[str, Observation], places: dict[str, _Place]) -> None:
    """A line with those of its ancestors that have no place yet."""
    path: dict[str, Observation] = {}
    walker: Observation | None = fact
    while walker is not None and walker.id not in places and walker.id not in path:
        path[walker.id] = walker
        walker = by_id.get(walker.parent) if walker.parent else None
    above = places.get(walker.id, _NO_PLACE) if walker is not None else _NO_PLACE
    for step in reversed(path.values()):
        at = step.at or NO_TIME
        above = places[step.id] = (max(above[0], at), above[1] + 1, at, step.id)


def split_by_thread(facts: Iterable[Observation]) -> dict[str | None, list[Observation]]:
    """Ordered facts by thread: None is the main conversation; old sidechains go by the line they start at."""
    main: list[Observation] = []
    threads: dict[str | None, list[Observation]] = {None: main}
    roots: dict[str, str] = {}
    for fact in facts:
        if not fact.is_sidechain:
            main.append(fact)
            continue
        name = fact.agent_id
        if name is None:
            name = roots[fact.id] = roots.get(fact.parent or "", fact.id)
        threads.setdefault(name, []).append(fact)
    return threads


def merge_observations(known: Mapping[str, Observation], arrived: Sequence[Observation]) -> dict[str, Observation]:
    """What the arrived lines add or improve, by id; lines that were known as well or better are left out."""
    news: dict[str, Observation] = {}
    for fact in arrived:
        held = news.get(fact.id) or known.get(fact.id)
        if held is None or (held != fact and choose_more_complete(held, fact) is fact):
            news[fact.id] = fact
    return news
