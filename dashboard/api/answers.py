"""Answers as JSON. Those with many rows are written at once: the framework would check every value of ours three times
over."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import orjson
from django.http import HttpResponse
from ninja.renderers import JSONRenderer
from ninja.responses import NinjaJSONEncoder

from dashboard.plain_json import spell_decimal, write_value


class PlainEncoder(NinjaJSONEncoder):
    def default(self, o: Any) -> Any:
        return spell_decimal(o) if isinstance(o, Decimal) else super().default(o)


class PlainRenderer(JSONRenderer):
    """What the framework writes by itself, under the same rules."""

    encoder_class = PlainEncoder


def answer_json(values: Mapping[str, object]) -> HttpResponse:
    """The same letters the framework writes. Tests hold the values against the endpoint's schema."""
    written = orjson.dumps(values, default=write_value, option=orjson.OPT_PASSTHROUGH_DATETIME)
    return HttpResponse(written, content_type="application/json; charset=utf-8")
