"""Cache breaks of a period added up by the database: totals, days, evidence, groups, each beside the period before.

Two queries however many breaks there are, both answered by the index break_ledger; only a group by project or by
developer looks at sessions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from django.db.models import BooleanField, Case, Count, F, QuerySet, Sum, Value, When

from compaction.cache.causes import Grade
from dashboard.access import Actor
from dashboard.models import CacheBreak
from dashboard.pages.ledger import GRADES, find_cause_note, find_losses
from dashboard.pages.ledger_filters import GroupName, LedgerFilters
from dashboard.pages.periods import LocalDay, Period

_NOTHING_USD, _SMALLEST_USD = Decimal(0), Decimal("0.00000001")
_COLUMNS = {
    GroupName.CAUSE: "cause",
    GroupName.PROJECT: "session__project",
    GroupName.DEVELOPER: "session__developer",
    GroupName.MODEL: "model",
}
_UNNAMED = {
    GroupName.PROJECT: "no project",
    GroupName.DEVELOPER: "unknown developer",
    GroupName.MODEL: "unknown model",
}


@dataclass(frozen=True, slots=True)
class LossSum:
    """Breaks added up. Dollars leave out those of models without a known price, which `unpriced` counts."""

    breaks: int = 0
    avoidable_breaks: int = 0
    lost_tokens: int = 0
    recreated_tokens: int = 0
    lost_usd: Decimal = _NOTHING_USD
    avoidable_usd: Decimal = _NOTHING_USD  # net
    avoidable_gross_usd: Decimal = _NOTHING_USD  # what the avoidable breaks lost
    unpriced: int = 0

    def __add__(self, other: "LossSum") -> "LossSum":
        return LossSum(
            self.breaks + other.breaks,
            self.avoidable_breaks + other.avoidable_breaks,
            self.lost_tokens + other.lost_tokens,
            self.recreated_tokens + other.recreated_tokens,
            self.lost_usd + other.lost_usd,
            self.avoidable_usd + other.avoidable_usd,
            self.avoidable_gross_usd + other.avoidable_gross_usd,
            self.unpriced + other.unpriced,
        )

    @property
    def other_usd(self) -> Decimal:
        return self.lost_usd - self.avoidable_usd

    @property
    def is_price_unknown(self) -> bool:
        """No break has a price: a sum of nothing would read as free."""
        return 0 < self.breaks == self.unpriced

    @property
    def told_lost_usd(self) -> Decimal | None:
        return None if self.is_price_unknown else self.lost_usd

    @property
    def told_avoidable_usd(self) -> Decimal | None:
        return None if self.is_price_unknown else self.avoidable_usd

    @property
    def told_gross_usd(self) -> Decimal | None:
        """The gross, where it differs from the net."""
        has_gross = not self.is_price_unknown and self.avoidable_gross_usd != self.avoidable_usd
        return self.avoidable_gross_usd if has_gross else None

    @property
    def avoidable_share(self) -> Decimal | None:
        return self.avoidable_usd / self.lost_usd if self.lost_usd else None


@dataclass(frozen=True, slots=True)
class EvidenceSum:
    """Breaks whose cause is known in one way."""

    grade: Grade
    total: LossSum
    share: float  # of all breaks

    @property
    def words(self) -> str:
        return GRADES[self.grade][0]

    @property
    def meaning(self) -> str:
        return GRADES[self.grade][1]


@dataclass(frozen=True, slots=True)
class LossGroup:
    """One cause, project, developer, model or day; `query` leads to its breaks, empty where no filter stands for it."""

    key: str
    name: str
    total: LossSum
    before: LossSum | None  # the same in the period before; a day has none
    evidence: tuple[EvidenceSum, ...]
    query: str

    @property
    def evidence_words(self) -> str:
        return ", ".join(f"{each.total.breaks:,} {each.words}" for each in self.evidence)


@dataclass(frozen=True, slots=True)
class Ledger:
    """`before` is as much of the period before as of this one is over."""

    filters: LedgerFilters
    total: LossSum
    before: LossSum
    evidence: tuple[EvidenceSum, ...]
    days: tuple[tuple[date, LossSum], ...]
    groups: tuple[LossGroup, ...]

    @property
    def period(self) -> Period:
        return self.filters.period

    @property
    def known_share(self) -> float | None:
        """Breaks whose cause somebody saw, as a share: neither inferred nor unknown."""
        if not self.total.breaks:
            return None
        return sum(each.share for each in self.evidence if each.grade not in (Grade.INFERRED, Grade.UNKNOWN))


def read_ledger(actor: Actor, filters: LedgerFilters) -> Ledger:
    cells = _sum_cells(_find(actor, filters), day=LocalDay("at", filters.period), grade=F("grade"))
    days = _add_by(cells, "day")
    evidence = _mix_evidence(cells)
    if filters.by is GroupName.DAY:
        before = _sum_before(actor, filters)
        groups = _list_days(filters, cells)
    else:
        before, groups = _read_groups(actor, filters)
    return Ledger(
        filters=filters,
        total=_add(sum_ for _, sum_ in cells),
        before=before,
        evidence=evidence,
        days=tuple((day, days.get(day, LossSum())) for day in filters.period.list_days()),
        groups=groups,
    )


_Cell = tuple[Mapping[str, Any], LossSum]


def _find(actor: Actor, filters: LedgerFilters) -> QuerySet[CacheBreak]:
    return find_losses(actor, filters.wanted).order_by()


def _find_both(actor: Actor, filters: LedgerFilters) -> QuerySet[CacheBreak]:
    """Breaks of the period and of the one before it, as far as that counts; `is_now` tells them apart."""
    period, before = filters.period, filters.period.before
    wide = replace(filters.wanted, since=before.start_at)
    found = find_losses(actor, wide).order_by()
    if before.so_far_at < before.end_at:
        found = found.exclude(at__gte=before.so_far_at, at__lt=before.end_at)
    now = Case(When(at__gte=period.start_at, then=Value(True)), default=Value(False), output_field=BooleanField())
    return found.annotate(is_now=now)


def _sum_before(actor: Actor, filters: LedgerFilters) -> LossSum:
    before = filters.period.before
    wanted = replace(filters.wanted, since=before.start_at, until=before.so_far_at)
    return _add(sum_ for _, sum_ in _sum_cells(find_losses(actor, wanted).order_by()))


def _read_groups(actor: Actor, filters: LedgerFilters) -> tuple[LossSum, tuple[LossGroup, ...]]:
    """With what the period before lost. Groups that have no break any more are among them, so that both columns add
    up; they lead nowhere."""
    cells = _sum_cells(_find_both(actor, filters), is_now=F("is_now"), key=F(_COLUMNS[filters.by]), grade=F("grade"))
    now = [(keys, sum_) for keys, sum_ in cells if keys["is_now"]]
    past = [(keys, sum_) for keys, sum_ in cells if not keys["is_now"]]
    before = _add_by(past, "key")
    by_key: dict[Any, list[_Cell]] = {key: [] for key in before} | _split_by(now, "key")
    groups = (
        LossGroup(
            key=key,
            name=_name_group(filters.by, key),
            total=_add(sum_ for _, sum_ in own),
            before=before.get(key, LossSum()),
            evidence=_mix_evidence(own),
            query=narrowed.query if own and (narrowed := filters.narrow_to(key)) else "",
        )
        for key, own in by_key.items()
    )
    return _add(before.values()), tuple(sorted(groups, key=_rank))


def _list_days(filters: LedgerFilters, cells: Iterable[_Cell]) -> tuple[LossGroup, ...]:
    """Newest first; a day without a break is left out."""
    by_day = _split_by(cells, "day")
    return tuple(
        LossGroup(
            key=day.isoformat(),
            name=day.isoformat(),
            total=_add(sum_ for _, sum_ in own),
            before=None,
            evidence=_mix_evidence(own),
            query=narrowed.query if (narrowed := filters.narrow_to(day.isoformat())) else "",
        )
        for day, own in sorted(by_day.items(), reverse=True)
    )


def _rank(group: LossGroup) -> tuple[object, ...]:
    """What could have been kept first, then what was lost, then how often."""
    total = group.total
    return (-total.avoidable_usd, -total.lost_usd, -total.lost_tokens, -total.breaks, group.name)


def _name_group(by: GroupName, key: str) -> str:
    if by is GroupName.CAUSE:
        return find_cause_note(key).title.rstrip(".")
    return key or _UNNAMED[by]


def _sum_cells(rows: QuerySet[CacheBreak], **keys: Any) -> list[_Cell]:
    """One cell for each combination of keys, avoidable or not."""
    named = {f"by_{name}": expression for name, expression in keys.items()}
    sums: Iterable[Mapping[str, Any]] = rows.values("is_avoidable", **named).annotate(
        breaks=Count("id"),
        priced=Count("lost_usd"),
        tokens=Sum("lost_tokens"),
        recreated=Sum("recreated_tokens"),
        usd=Sum("lost_usd"),
        net=Sum("avoidable_usd"),
    )
    return [({name: row[f"by_{name}"] for name in keys}, _make_sum(row)) for row in sums]


def _make_sum(row: Mapping[str, Any]) -> LossSum:
    # SQLite adds up floating numbers: what it is off by lies beyond the last digit that is kept.
    usd, net = ((row[name] or _NOTHING_USD).quantize(_SMALLEST_USD) for name in ("usd", "net"))
    is_avoidable = row["is_avoidable"]
    return LossSum(
        breaks=row["breaks"],
        avoidable_breaks=row["breaks"] if is_avoidable else 0,
        lost_tokens=row["tokens"],
        recreated_tokens=row["recreated"],
        lost_usd=usd,
        avoidable_usd=net,
        avoidable_gross_usd=usd if is_avoidable else _NOTHING_USD,
        unpriced=row["breaks"] - row["priced"],
    )


def _split_by(cells: Iterable[_Cell], name: str) -> dict[Any, list[_Cell]]:
    split: dict[Any, list[_Cell]] = {}
    for cell in cells:
        split.setdefault(cell[0][name], []).append(cell)
    return split


def _add_by(cells: Iterable[_Cell], name: str) -> dict[Any, LossSum]:
    return {key: _add(sum_ for _, sum_ in own) for key, own in _split_by(cells, name).items()}


def _add(sums: Iterable[LossSum]) -> LossSum:
    return sum(sums, LossSum())


def _mix_evidence(cells: Iterable[_Cell]) -> tuple[EvidenceSum, ...]:
    """Best known first. A grade that this version does not know is none."""
    sums: dict[Grade, LossSum] = {}
    for keys, sum_ in cells:
        grade = Grade(keys["grade"]) if keys["grade"] in set(Grade) else Grade.UNKNOWN
        sums[grade] = sums.get(grade, LossSum()) + sum_
    breaks = sum(sum_.breaks for sum_ in sums.values())
    return tuple(EvidenceSum(grade, sums[grade], sums[grade].breaks / breaks) for grade in Grade if grade in sums)
