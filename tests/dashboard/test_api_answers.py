"""Answers that are written at once have the letters the framework would write."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from django.core.serializers.json import DjangoJSONEncoder

from dashboard.api.answers import answer_json

VALUES = [
    datetime(2026, 5, 1, 10, 0, 4, 123_999, tzinfo=UTC),
    datetime(2026, 5, 1, 10, 0, 4, tzinfo=UTC),
    datetime(2026, 5, 1, 10, 0, 4, 999, tzinfo=UTC),
    datetime(2026, 5, 1, 10, 0, 4, 5_000, tzinfo=timezone(timedelta(hours=2))),
    datetime(2026, 5, 1, 10, 0, 4),  # noqa: DTZ001 (without a zone: the encoder's business too)
    date(2026, 5, 1),
    Decimal("1.24000000"),
    Decimal("1E-8"),
    "Grüße <b>",
    None,
    [1, 2.5, True],
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_every_value_is_written_as_the_framework_writes_it(value: object) -> None:
    assert json.loads(answer_json({"value": value}).content) == json.loads(DjangoJSONEncoder().encode({"value": value}))
