"""Paging by place: a list newest first goes on behind the last row shown, so that new rows shift nothing."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from django.db.models import F, Model, Q, QuerySet

_Row = TypeVar("_Row", bound=Model)
_LARGEST_ID = 2**63 - 1


@dataclass(frozen=True)
class Place:
    """A row's time and id; rows without a time come last."""

    at: datetime | None
    id: int

    def __str__(self) -> str:
        # Ends in Z: the plus of an offset is a space in an address.
        moment = self.at.astimezone(UTC).isoformat().replace("+00:00", "Z") if self.at else ""
        return f"{moment}~{self.id}"


def read_place(text: str) -> Place | None:
    """A place as a link carries it; None for anything else."""
    moment, separator, number = text.partition("~")
    if not separator or not (number.isascii() and number.isdecimal()) or int(number[:20]) > _LARGEST_ID:
        return None
    try:
        at = datetime.fromisoformat(moment) if moment else None
    except ValueError:
        return None
    if at is not None and at.tzinfo is None:
        return None
    return Place(at, int(number[:20]))


def take_page(rows: QuerySet[_Row], before: Place | None, size: int) -> tuple[list[_Row], Place | None]:
    """One page of rows that have `at`, and the place the next one starts behind."""
    # PostgreSQL walks an index backwards only where nothing is said about missing times.
    has_gaps = rows.model._meta.get_field("at").null
    if before is not None:
        rows = rows.filter(_is_behind(before) if has_gaps else _is_older(before))
    newest = F("at").desc(nulls_last=True) if has_gaps else F("at").desc()
    found: list[Any] = list(rows.order_by(newest, "-id")[: size + 1])
    page = found[:size]
    return page, Place(page[-1].at, page[-1].pk) if len(found) > size else None


def _is_older(place: Place) -> Q:
    """Said so that an index on the time begins at the place."""
    if place.at is None:
        return Q(id__lt=place.id)
    return Q(at__lte=place.at) & (Q(at__lt=place.at) | Q(id__lt=place.id))


def _is_behind(place: Place) -> Q:
    if place.at is None:
        return Q(at=None, id__lt=place.id)
    return Q(at__lt=place.at) | Q(at=place.at, id__lt=place.id) | Q(at=None)
