"""The form of a team's own prices: one row per model. It only collects; dashboard.policies.own_prices judges."""

from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.forms import BaseFormSet, formset_factory

from dashboard.pages.policy_forms import DescribedForm, PolicyDraft
from dashboard.policies.changes import LONGEST_NOTE
from dashboard.policies.in_force import TeamSettings
from dashboard.policies.own_prices import MOST_PRICES, RATE_NAMES, find_price_faults, spell_rates


def _rate_field(label: str) -> forms.CharField:
    widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off", "class": "figure-input"})
    return forms.CharField(label=label, required=False, max_length=40, widget=widget)


class PricesForm(DescribedForm):
    note = forms.CharField(label="Why, for the history", required=False, max_length=LONGEST_NOTE)
    base_version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)


class PriceForm(DescribedForm):
    model = forms.CharField(label="Model", required=False, max_length=300)
    input = _rate_field("Input")
    output = _rate_field("Output")
    write_5m = _rate_field("Write, 5 min")
    write_1h = _rate_field("Write, 1 h")
    read = _rate_field("Read")
    remove = forms.BooleanField(label="Remove", required=False)


PriceRows = formset_factory(PriceForm, extra=1, max_num=MOST_PRICES + 1, absolute_max=MOST_PRICES + 1)


class PricesDraft(PolicyDraft):
    """The form; bound to what a person sent, or showing what is in force. `own_prices` once they make sense."""

    def __init__(self, data: Mapping[str, Any] | None, settings: TeamSettings) -> None:
        rows = [{"model": model, **spell_rates(price)} for model, price in settings.prices.items()]
        self.form = PricesForm(data, initial={"base_version": settings.version})
        self.rows: BaseFormSet[PriceForm] = PriceRows(data, initial=rows, prefix="prices")
        self.own_prices: dict[str, tuple[str, ...]] | None = None
        if data is not None:
            self._judge()

    def _judge(self) -> None:
        given: dict[str, PriceForm] = {}
        is_readable = self.form.is_valid() and self.rows.is_valid()
        for row in self._list_filled_rows():
            if given.setdefault(_read(row, "model"), row) is not row:
                row.add_error("model", "This model has a price in another row.")
                is_readable = False
        prices = {model: tuple(_read(row, name) for name in RATE_NAMES) for model, row in given.items()}
        faults = list(find_price_faults(prices))
        for fault in faults:
            form: forms.Form = given.get(fault.model, self.form) if fault.field != "own_prices" else self.form
            form.add_error(fault.field if fault.field in form.fields else None, fault.sentence)
        self.own_prices = prices if is_readable and not faults else None

    def _list_filled_rows(self) -> Iterator[PriceForm]:
        """Yield rows that hold something and are not to be removed."""
        for row in self.rows:
            if not row["remove"].data and any(_read(row, name) for name in ("model", *RATE_NAMES)):
                yield row


def _read(row: PriceForm, name: str) -> str:
    return str(row[name].data or "").strip()
