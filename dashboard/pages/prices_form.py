"""The form of a team's own prices: one row per model. It only collects; dashboard.policies.own_prices judges."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms import BaseFormSet, formset_factory

from dashboard.pages.policy_forms import DescribedForm, PolicyDraft, make_note_field
from dashboard.policies.in_force import TeamSettings
from dashboard.policies.own_prices import (
    LARGEST_RATE_USD,
    MOST_PRICES,
    RATE_NAMES,
    USUAL_MULTIPLES,
    find_list_price,
    find_multiples,
    find_price_faults,
    read_usd,
    spell_rates,
    spell_usd,
    take_multiple,
)


def _rate_field(label: str) -> forms.CharField:
    widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off", "class": "figure-input"})
    return forms.CharField(label=label, required=False, max_length=40, widget=widget)


def _cache_rate_field(label: str, name: str) -> forms.CharField:
    field = _rate_field(label)
    field.help_text = f"Empty: the list price's multiple of input, otherwise {USUAL_MULTIPLES[name]} times."
    return field


class PricesForm(DescribedForm):
    note = make_note_field()
    base_version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)


class PriceForm(DescribedForm):
    model = forms.CharField(label="Model", required=False, max_length=300)
    input = _rate_field("Input")
    output = _rate_field("Output")
    write_5m = _cache_rate_field("Write, 5 min", "write_5m")
    write_1h = _cache_rate_field("Write, 1 h", "write_1h")
    read = _cache_rate_field("Read", "read")
    remove = forms.BooleanField(label="Remove", required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        model = str(self["model"].value() or "").strip()
        if model:
            self._show_multiples(model)

    def _show_multiples(self, model: str) -> None:
        """Show in each cache rate what an empty field stands for."""
        input_usd = read_usd(str(self["input"].value() or ""))
        on_list = ", as on the price list" if find_list_price(model) else ""
        for name, multiple in find_multiples(model).items():
            self.fields[name].help_text = f"Empty: {spell_usd(round(multiple, 4))} times input{on_list}."
            if input_usd is not None and input_usd <= LARGEST_RATE_USD:
                self.fields[name].widget.attrs["placeholder"] = spell_usd(take_multiple(input_usd, multiple))


PriceRows = formset_factory(PriceForm, extra=1, max_num=MOST_PRICES + 1, absolute_max=MOST_PRICES + 1)


@dataclass(frozen=True)
class ShownRate:
    """A rate in force, in dollars per million tokens; filled where the team left it empty."""

    usd: str
    is_filled: bool


def list_shown_prices(settings: TeamSettings) -> list[tuple[str, list[ShownRate]]]:
    """Return the models with a price of the team's own, each with its rates in the order of RATE_NAMES."""
    return [
        (
            model,
            [
                ShownRate(usd, is_filled=entered is None)
                for usd, entered in zip(spell_rates(price).values(), settings.own_prices[model], strict=True)
            ],
        )
        for model, price in settings.prices.items()
    ]


class PricesDraft(PolicyDraft):
    """The form; bound to what a person sent, or showing what is in force. `own_prices` once they make sense."""

    def __init__(self, data: Mapping[str, Any] | None, settings: TeamSettings) -> None:
        rows = [
            {"model": model, **dict(zip(RATE_NAMES, (rate or "" for rate in rates), strict=True))}
            for model, rates in settings.own_prices.items()
        ]
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
                row.add_error("model", "This model already has a price in another row.")
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
