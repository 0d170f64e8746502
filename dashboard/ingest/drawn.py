"""Sessions drawn where they are decoded: every row of a session that nobody knows yet, ready to be written.

Whether it is new is found out by the writer; where it is not, its lines are taken from the segments.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from compaction.context.policy import Policy
from compaction.llm.prices import NO_PRICES, Price
from compaction.prompt.fingerprint import read_fingerprint
from compaction.timeline.order import merge_observations
from dashboard.ingest.observed import ObservedLine, ObservedSession, ObservedShape
from dashboard.ingest.picture import PolicyAt, SessionPicture, add_totals, draw_picture
from dashboard.ingest.picture.columns import Row, fit_id
from dashboard.ingest.picture.spelling import read_time, spell_rows
from dashboard.ingest.segments import Segment, cut_lines, pack_segment, read_segment_lines

# How columns that totals are made of are read back; the others are what they were.
_READINGS: Mapping[str, Callable[[str], Any]] = {
    "at": read_time,
    "cost_usd": Decimal,
    "lost_usd": Decimal,
    "avoidable_usd": Decimal,
}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one kind with the columns they have, the natural key first."""

    columns: tuple[str, ...] = ()
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def keys(self) -> list[str]:
        return [row[0] for row in self.rows]

    def list_column(self, name: str) -> list[Any]:
        place = self.columns.index(name) if self.rows else 0
        return [row[place] for row in self.rows]

    def read_back(self) -> dict[str, Row]:
        """By key, with times and dollars as they were before they were spelt."""
        reads = [_READINGS.get(name) for name in self.columns]
        return {
            row[0]: {
                name: value if read is None or value is None else read(value)
                for name, value, read in zip(self.columns, row, reads, strict=True)
            }
            for row in self.rows
        }

    def change(self, values: Mapping[str, Row]) -> "Table":
        """With other values in some columns of the rows with these keys."""
        rows = [
            tuple({**dict(zip(self.columns, row, strict=True)), **_spell_row(values.get(row[0], {}))}.values())
            for row in self.rows
        ]
        return Table(self.columns, rows)

    def split(self, names: Collection[str]) -> "tuple[Table, Table]":
        """The rows with these keys, and the others."""
        named = [row for row in self.rows if row[0] in names]
        return Table(self.columns, named), Table(self.columns, [row for row in self.rows if row[0] not in names])


@dataclass(frozen=True, slots=True)
class DrawnSession:
    """What `record` would write of a session that is new, if all its calls count."""

    session: Table  # one row
    calls: Table
    losses: Table
    compactions: Table
    threads: Table
    hours: Table
    unanswered: Table
    segments: tuple[Segment, ...]
    shapes: tuple[ObservedShape, ...] = ()
    developer: str = ""
    nested: frozenset[str] = frozenset()  # ids of lines that stand only inside other lines

    @property
    def external_id(self) -> str:
        return str(self.session.rows[0][0])

    @property
    def line_count(self) -> int:
        """How many lines stand for themselves."""
        return sum(segment.entry_count for segment in self.segments) - len(self.nested)

    @property
    def has_content(self) -> bool:
        return any(segment.content is not None for segment in self.segments)

    @property
    def row_count(self) -> int:
        return len(self.calls.rows) + len(self.losses.rows) + len(self.hours.rows) + len(self.segments)

    @property
    def stored_bytes(self) -> int:
        return sum(len(segment.facts) + len(segment.content or b"") for segment in self.segments)

    def count_without(self, uncounted: Collection[str]) -> "DrawnSession":
        """The same where these calls of it count elsewhere."""
        picture = SessionPicture(
            session={},
            threads={name: {} for name in self.threads.keys},
            calls=self.calls.read_back(),
            losses=self.losses.read_back(),
            compactions=self.compactions.read_back(),
        )
        session, threads, hours = add_totals(picture, uncounted)
        return replace(
            self,
            session=self.session.change({self.external_id: session}),
            threads=self.threads.change(threads),
            hours=_spell_rows("hour_at", hours),
        )

    def observe_again(self) -> ObservedSession:
        """The lines it was drawn from."""
        lines: list[ObservedLine] = []
        for segment in self.segments:
            lines += read_segment_lines(segment.facts, segment.content)
        return ObservedSession(self.external_id, tuple(lines), self.shapes, self.developer, self.nested)


def draw_session(
    observed: ObservedSession,
    policy: Policy,
    policy_at: PolicyAt | None = None,
    prices: Mapping[str, Price] = NO_PRICES,
) -> DrawnSession | None:
    """None where it takes the database: its lines name a request's shape that came before them."""
    prints = {shape.digest: shape.prints for shape in observed.shapes}
    if any(line.fact.shape and line.fact.shape[1] not in prints for line in observed.lines):
        return None
    lines = _pick_lines(observed.lines)
    external_id = fit_id(observed.external_id)
    picture = draw_picture(
        [line.fact for line in lines],
        external_id=external_id,
        policy=policy,
        policy_at=policy_at,
        prices=prices,
        shapes={digest: read_fingerprint(told) for digest, told in prints.items()},
    )
    session, threads, hours = add_totals(picture, ())
    return DrawnSession(
        session=_spell_rows("external_id", {external_id: picture.session | session}),
        calls=_spell_rows("call_id", picture.calls),
        losses=_spell_rows("call_id", picture.losses),
        compactions=_spell_rows("entry_uuid", picture.compactions),
        threads=_spell_rows("agent_id", {name: row | threads[name] for name, row in picture.threads.items()}),
        hours=_spell_rows("hour_at", hours),
        unanswered=_spell_rows("name", picture.unanswered),
        segments=tuple(pack_segment(stretch) for stretch in cut_lines(lines)),
        shapes=observed.shapes,
        developer=observed.developer,
        nested=observed.nested,
    )


def _pick_lines(lines: tuple[ObservedLine, ...]) -> Iterable[ObservedLine]:
    """Each line once, its best reading at the place of the first."""
    by_id = {line.fact.id: line for line in lines}
    if len(by_id) == len(lines):
        return lines
    by_id = {line.fact.id: line for line in reversed(lines)}
    better = merge_observations({}, [line.fact for line in lines])
    return [
        by_id[name] if by_id[name].fact is fact else next(line for line in lines if line.fact is fact)
        for name, fact in better.items()
    ]


def _spell_row(row: Row) -> Row:
    return dict(zip(row, spell_rows([row.values()])[0], strict=True)) if row else row


def _spell_rows(key: str, rows: Mapping[Any, Row]) -> Table:
    if not rows:
        return Table()
    columns = (key, *next(iter(rows.values())))
    return Table(columns, spell_rows([(name, *row.values()) for name, row in rows.items()]))
