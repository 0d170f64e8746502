"""Facts in one order whatever order they came in: a line stands after the line it hangs under, else by time.

Clients write some lines with a time before that of the line above them; copies, pushes and rewritten files arrive in
any order. Neither file nor arrival decides here, so the same lines always tell the same story.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from compaction.cache.facts import LineFact, pick_better

NO_TIME = datetime.min.replace(tzinfo=UTC)
_Place = tuple[datetime, int]
_NO_PLACE: _Place = (NO_TIME, 0)


def order_facts(facts: Iterable[LineFact]) -> list[LineFact]:
    """Each line no earlier than its parent; lines of one moment by their distance from the root, then by id."""
    by_id = {fact.id: fact for fact in facts}
    places = _find_places(by_id)
    keyed = [(*place, fact.at or NO_TIME, name) for (name, fact), place in zip(by_id.items(), places, strict=True)]
    return [by_id[key[3]] for key in sorted(keyed)]


def _find_places(by_id: Mapping[str, LineFact]) -> Iterator[_Place]:
    """For every line the latest time among it and its ancestors, and how many ancestors are known."""
    places: dict[str, _Place] = {}
    for name, fact in by_id.items():
        above = places.get(fact.parent) if fact.parent else _NO_PLACE
        if above is not None and name not in places:  # nearly always: lines are written after their parents
            at = fact.at or NO_TIME
            places[name] = (max(above[0], at), above[1] + 1)
            continue
        path: dict[str, LineFact] = {}
        walker: LineFact | None = fact
        while walker is not None and walker.id not in places and walker.id not in path:
            path[walker.id] = walker
            walker = by_id.get(walker.parent) if walker.parent else None
        above = places.get(walker.id, _NO_PLACE) if walker is not None else _NO_PLACE
        for step in reversed(path.values()):
            above = (max(above[0], step.at or NO_TIME), above[1] + 1)
            places[step.id] = above
    return (places[name] for name in by_id)


def split_facts(facts: Iterable[LineFact]) -> dict[str | None, list[LineFact]]:
    """Ordered facts by thread: None is the main conversation; old sidechains go by the line they start at."""
    threads: dict[str | None, list[LineFact]] = {None: []}
    roots: dict[str, str] = {}
    for fact in facts:
        name = fact.agent_id if fact.is_sidechain else None
        if fact.is_sidechain and name is None:
            name = roots.get(fact.parent or "", fact.id)
            roots[fact.id] = name
        threads.setdefault(name, []).append(fact)
    return threads


def merge_facts(known: Mapping[str, LineFact], arrived: Sequence[LineFact]) -> dict[str, LineFact]:
    """What the arrived lines add or improve, by id; lines that were known as well or better are left out."""
    news: dict[str, LineFact] = {}
    for fact in arrived:
        held = news.get(fact.id) or known.get(fact.id)
        if held is None or (held != fact and pick_better(held, fact) is fact):
            news[fact.id] = fact
    return news
