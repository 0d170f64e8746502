"""The writer of a team's summariser settings: checked field by field, each change in the audit log, keys never."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from django.db import transaction
from django.utils import timezone

from dashboard.accounts import audit
from dashboard.accounts.refusals import Refused
from dashboard.models import AuditAction, NativeForm, SummarizerSettings, Team, User
from dashboard.policies.changes import change_policy
from dashboard.policies.in_force import find_policy
from dashboard.policies.own_prices import (
    TypedPrices,
    clean_prices,
    explain_bad_usd,
    find_price_faults,
    is_model_name,
    read_usd,
)
from dashboard.runs.team_key import hint_at, seal_key
from dashboard.runs.team_settings import NO_SMALL_MODEL, stamp_of

LARGEST_CAP_USD = Decimal(100_000)
SHORTEST_KEY, LONGEST_KEY = 16, 400
NATIVE_WORDS = {NativeForm.OFF: "off", NativeForm.ON_DEMAND: "on demand", NativeForm.THRESHOLD: "at a threshold"}
SESSION_MODEL = "the session's own"

_KEY = re.compile(r"[!-~]+", re.ASCII)


@dataclass(frozen=True)
class Fault:
    """A value that cannot be used: the field to mark, the model where it is one of several, and a sentence."""

    field: str
    sentence: str
    model: str = ""


class BadChoice(Exception):
    """Values that cannot be used; nothing was saved."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(" ".join(fault.sentence for fault in faults))
        self.faults = faults


@dataclass(frozen=True, kw_only=True)
class SettingsChange:
    """What to change; None stays as it is. Figures are texts as typed, rates in the order of RATE_NAMES; own prices are
    part of the team's policy."""

    model: str | None = None
    small_model: str | None = None
    allows_fork: bool | None = None
    native_form: NativeForm | None = None
    daily_cap_usd: str | None = None
    own_prices: TypedPrices | None = None


def find_faults(change: SettingsChange) -> Iterator[Fault]:
    """Everything that is wrong, so that a person can put it right at once."""
    for name, model in (("model", change.model), ("small_model", change.small_model)):
        if model and not is_model_name(model):
            yield Fault(name, f"{model[:60]} is not a model name.")
    if change.daily_cap_usd is not None:
        cap = read_usd(change.daily_cap_usd)
        if cap is None or cap > LARGEST_CAP_USD:
            expected = f"Enter a cap from 0 to {LARGEST_CAP_USD:,}."
            yield Fault("daily_cap_usd", explain_bad_usd(change.daily_cap_usd, expected))
    for fault in find_price_faults(change.own_prices or {}):
        yield Fault(fault.field, fault.sentence, fault.model)


@transaction.atomic
def change_settings(team: Team, change: SettingsChange, *, by: User | None, stamp: str | None = None) -> None:
    """`stamp` is what the person looked at: what came since is never overwritten (Refused). Raises BadChoice.

    Values that are in force already write nothing.
    """
    faults = list(find_faults(change))
    if faults:
        raise BadChoice(faults)
    row = _lock_row(team)
    if change.own_prices is not None:
        policy = find_policy(team)
        priced = replace(policy, own_prices=clean_prices(change.own_prices))
        change_policy(team, priced, by=by, base_version=policy.version)
    told = list(_apply(row, change))
    if not told:
        return
    if stamp is not None and stamp != stamp_of(row if row.pk else None):
        who = row.changed_by.username if row.changed_by else "Someone"
        raise Refused(
            f"{who} changed these settings in the meantime, so nothing was saved. Review them, then save again."
        )
    _save(row, by=by)
    audit.note(team, AuditAction.SUMMARIZER_CHANGED, by=by, subject="settings", changes=told)


@transaction.atomic
def set_key(team: Team, key: str, *, by: User | None) -> None:
    """Raises BadChoice for what can be no key. It is not tried here: a try would cost money or tell on the person."""
    key = key.strip()
    if not SHORTEST_KEY <= len(key) <= LONGEST_KEY or _KEY.fullmatch(key) is None:
        raise BadChoice([Fault("key", "Invalid API key: expected a single word of letters, digits and symbols.")])
    row = _lock_row(team)
    was_set = row.key_sealed is not None
    row.key_sealed, row.key_hint = seal_key(team, key), hint_at(key)
    _save(row, by=by)
    told = "API key replaced" if was_set else "API key set"
    audit.note(team, AuditAction.SUMMARIZER_CHANGED, by=by, subject=told, key=row.key_hint)


@transaction.atomic
def forget_key(team: Team, *, by: User | None) -> bool:
    """Whether there was one to forget."""
    row = _lock_row(team)
    if row.key_sealed is None:
        return False
    hint, row.key_sealed, row.key_hint = row.key_hint, None, ""
    _save(row, by=by)
    audit.note(team, AuditAction.SUMMARIZER_CHANGED, by=by, subject="API key removed", key=hint)
    return True


def _lock_row(team: Team) -> SummarizerSettings:
    """The team's row for this transaction; the first one is made here, so that two first savers meet as well."""
    # The row of the team is there from the start, so it can be waited for.
    Team.objects.select_for_update().get(pk=team.pk)
    found = SummarizerSettings.objects.select_related("changed_by").filter(team=team).first()
    return found or SummarizerSettings(team=team)


def _apply(row: SummarizerSettings, change: SettingsChange) -> Iterator[str]:
    """Sets what differs and tells it, field by field."""
    cap = None if change.daily_cap_usd is None else read_usd(change.daily_cap_usd)
    if cap is not None and cap != row.daily_cap_usd:
        yield f"daily cap: ${row.daily_cap_usd:.2f} to ${cap:.2f}"
        row.daily_cap_usd = cap
    if change.allows_fork is not None and change.allows_fork != row.allows_fork:
        row.allows_fork = change.allows_fork
        yield f"reuse prompt cache: {'on' if change.allows_fork else 'off'}"
    if change.native_form is not None and change.native_form != row.native_form:
        yield (
            f"compaction by the API itself: {NATIVE_WORDS[NativeForm(row.native_form)]} to "
            f"{NATIVE_WORDS[change.native_form]}"
        )
        row.native_form = change.native_form
    if change.model is not None and change.model != row.model:
        yield f"model: {row.model or SESSION_MODEL} to {change.model or SESSION_MODEL}"
        row.model = change.model
    if change.small_model is not None and change.small_model != row.small_model:
        yield f"small model: {_tell_small(row.small_model)} to {_tell_small(change.small_model)}"
        row.small_model = change.small_model


def _tell_small(model: str) -> str:
    return "none" if model == NO_SMALL_MODEL else model or "newest small one"


def _save(row: SummarizerSettings, *, by: User | None) -> None:
    row.changed_by, row.changed_at = by, timezone.now()
    row.save()
