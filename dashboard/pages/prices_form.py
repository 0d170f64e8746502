"""The form of a team's own prices: one row per model. It only collects; dashboard.policies.own_prices judges."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms import BaseFormSet, formset_factory

from compaction.llm.prices import price_of
from dashboard.pages.policy_forms import DescribedForm, PolicyDraft, make_note_field
from dashboard.policies.in_force import TeamSettings
from dashboard.policies.own_prices import (
    MOST_PRICES,
    RATE_NAMES,
    USUAL_MULTIPLES,
    find_multiples,
    find_price_faults,
    read_usd,
    spell_rates,
    spell_usd,
    take_multiple,
)

_EMPTY_MEANS = "Empty: a multiple of input."


def _rate_field(label: str, help_text: str = "") -> forms.CharField:
    widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off", "class": "figure-input"})
    return forms.CharField(label=label, required=False, max_length=40, widget=widget, help_text=help_text)


class PricesForm(DescribedForm):
    note = make_note_field()
    base_version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)


class PriceForm(DescribedForm):
    model = forms.CharField(label="Model", required=False, max_length=300)
    input = _rate_field("Input")
    output = _rate_field("Output")
    write_5m = _rate_field("Write, 5 min", _EMPTY_MEANS)
    write_1h = _rate_field("Write, 1 h", _EMPTY_MEANS)
    read = _rate_field("Read", _EMPTY_MEANS)
    remove = forms.BooleanField(label="Remove", required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        model = str(self["model"].value() or "").strip()
        multiples = find_multiples(model) if model else USUAL_MULTIPLES
        input_usd = read_usd(str(self["input"].value() or ""))
        for name, multiple in multiples.items():
            times = f"{spell_usd(multiple)} times input"
            usd = times if input_usd is None else spell_usd(take_multiple(input_usd, multiple))
            self.fields[name].widget.attrs["placeholder"] = usd
            if model:
                on_list = ", as on the price list" if price_of(model, None) else ""
                self.fields[name].help_text = f"Empty: {times}{on_list}."


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
