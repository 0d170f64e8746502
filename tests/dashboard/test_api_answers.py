"""Answers that are written at once have the letters the framework would write."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from django.test import RequestFactory

from dashboard.api.answers import PlainRenderer, answer_json
from dashboard.plain_json import spell_decimal

VALUES = [
    datetime(2026, 5, 1, 10, 0, 4, 123_999, tzinfo=UTC),
    datetime(2026, 5, 1, 10, 0, 4, tzinfo=UTC),
    datetime(2026, 5, 1, 10, 0, 4, 999, tzinfo=UTC),
    datetime(2026, 5, 1, 10, 0, 4, 5_000, tzinfo=timezone(timedelta(hours=2))),
    datetime(2026, 5, 1, 10, 0, 4),  # noqa: DTZ001 (without a zone: the encoder's business too)
    date(2026, 5, 1),
    Decimal("1.24000000"),
    Decimal("1E-8"),
    Decimal("0E-8"),
    Decimal("1E+2"),
    "Grüße <b>",
    None,
    [1, 2.5, True],
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_every_value_is_written_as_the_framework_writes_it(value: object) -> None:
    framework = PlainRenderer().render(RequestFactory().get("/"), {"value": value}, response_status=200)
    assert json.loads(answer_json({"value": value}).content) == json.loads(framework)


@pytest.mark.parametrize(
    ("value", "written"),
    [("0E-8", "0.00000000"), ("1E-8", "0.00000001"), ("1E+2", "100"), ("-0.5", "-0.5"), ("1.24000000", "1.24000000")],
)
def test_decimals_have_plain_digits_everywhere(value: str, written: str) -> None:
    assert spell_decimal(Decimal(value)) == written
    assert json.loads(answer_json({"value": Decimal(value)}).content) == {"value": written}
    framework = PlainRenderer().render(RequestFactory().get("/"), {"value": Decimal(value)}, response_status=200)
    assert json.loads(framework) == {"value": written}
