"""The writer of policies: every change is a new row, with its audit event and the job that levels sessions anew."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from django.db import IntegrityError, transaction
from django.utils import timezone

from compaction.errors import BadPolicy
from dashboard.accounts import audit
from dashboard.accounts.refusals import Refused
from dashboard.ingest.redaction import ALWAYS_ON, rule_names
from dashboard.ingest.redaction.own_patterns import BadPattern, compile_all
from dashboard.jobs.post import post_job
from dashboard.models import AuditAction, FollowedFile, Team, TeamPolicy, User
from dashboard.policies.differences import Area, find_differences
from dashboard.policies.in_force import TeamSettings, default_settings, find_policy, settings_of
from dashboard.policies.own_prices import clean_prices
from dashboard.policies.proxy_additions import check_additions
from dashboard.policies.thresholds import clean_thresholds, lay_flat, stand_up
from dashboard.policies.unusable_patterns import keeps_content

RELEVEL = "relevel_sessions"
PROJECT = "project_sessions"
# A batch that was being recorded with the older policy may be written after the job has passed its session.
LATE_WRITERS_AFTER = timedelta(minutes=5)
MOST_PATTERNS = 20
MOST_DAYS = 36_500
LONGEST_NOTE = 200

K = TypeVar("K")
V = TypeVar("V")


@transaction.atomic
def change_policy(
    team: Team, wanted: TeamSettings, *, by: User | None, base_version: int, note: str = ""
) -> TeamSettings:
    """The settings then in force. `base_version` is what the person looked at: what came since is never overwritten.

    Raises BadPolicy at values that make no sense and Refused when somebody else was faster. Values that are in force
    already write nothing, so the same request may come twice.
    """
    current = find_policy(team)
    check_additions(wanted.proxy_additions)
    clean = replace(wanted, thresholds=clean_thresholds(wanted.thresholds), own_prices=clean_prices(wanted.own_prices))
    if wanted.own_patterns != current.own_patterns:  # who tunes thresholds cannot mend a stored pattern
        clean = replace(clean, own_patterns=_checked(wanted.own_patterns))
    clean = replace(clean, disabled_rules=_check_disabled(clean, current))
    for name, days in (("content_days", wanted.content_days), ("metrics_days", wanted.metrics_days)):
        if days is not None and not 1 <= days <= MOST_DAYS:
            raise BadPolicy(name, f"Enter 1 to {MOST_DAYS:,} days, or leave empty for no limit.")
    if not find_differences(current, clean):
        return current
    if current.version != base_version:
        raise Refused(_say_overtaken(team))
    return _write(team, current, clean, by=by, note=note[:LONGEST_NOTE])


@transaction.atomic
def undo_change(team: Team, version: int, *, by: User | None) -> TeamSettings:
    """What that version changed goes back to what it was before; what others changed since stays."""
    rows = {row.version: row for row in TeamPolicy.objects.filter(team=team, version__in=[version - 1, version])}
    if version not in rows:
        raise Refused("Change not found.")
    undone = settings_of(rows[version])
    before = settings_of(rows[version - 1]) if version - 1 in rows else default_settings(team)
    current = find_policy(team)
    wanted = _revert(current, undone, before)
    if not find_differences(current, wanted):
        raise Refused("These values were changed again later, so there is nothing left to undo.")
    return change_policy(team, wanted, by=by, base_version=current.version, note=f"undoes version {version}")


def _write(team: Team, current: TeamSettings, wanted: TeamSettings, *, by: User | None, note: str) -> TeamSettings:
    version = current.version + 1
    changes_prices = wanted.own_prices != current.own_prices
    changes_redaction = _redaction_of(wanted) != _redaction_of(current)
    try:
        with transaction.atomic():
            row = TeamPolicy.objects.create(
                team=team,
                version=version,
                thresholds=dict(wanted.thresholds),
                stores_content=wanted.stores_content,
                own_patterns=dict(wanted.own_patterns),
                disabled_rules=sorted(wanted.disabled_rules),
                redaction_version=version if changes_redaction else current.redaction_version,
                content_days=wanted.content_days,
                metrics_days=wanted.metrics_days,
                proxy_additions=wanted.proxy_additions.to_fields(),
                own_prices=dict(wanted.own_prices),
                price_version=version if changes_prices else current.price_version,
                changed_by=by,
                changed_by_name=by.username if by else audit.FROM_THE_TERMINAL,
                note=note,
            )
    except IntegrityError:
        raise Refused(_say_overtaken(team)) from None
    differences = find_differences(current, wanted)
    audit.note(
        team,
        AuditAction.POLICY_CHANGED,
        by=by,
        subject=f"version {version}",
        changes=[str(difference) for difference in differences],
    )
    if changes_redaction or (keeps_content(wanted) and not keeps_content(current)):
        # It is forgotten that files were read: the follower and the next import read them again, and fill content in
        # or replace what was redacted by other rules.
        FollowedFile.objects.filter(team=team).delete()
    if changes_prices:
        Team.objects.filter(pk=team.pk).update(price_version=version, has_own_prices=bool(wanted.own_prices))
        # What is written meanwhile with the older prices is found by the recurring round.
        post_job(PROJECT, key=f"prices:{team.pk}:{version}", team=team)
    if any(difference.area is Area.LINES for difference in differences):
        _post_relevelling(team, version)
    return settings_of(row)


def _post_relevelling(team: Team, version: int) -> None:
    key, payload = f"{RELEVEL}:{team.pk}:{version}", {"version": version}
    post_job(RELEVEL, key=key, team=team, payload=payload)
    later = timezone.now() + LATE_WRITERS_AFTER
    post_job(RELEVEL, key=f"{key}:late", team=team, payload=payload, due_at=later)


def _redaction_of(settings: TeamSettings) -> tuple[dict[str, str], frozenset[str]]:
    return dict(settings.own_patterns), settings.disabled_rules


def _check_disabled(wanted: TeamSettings, current: TeamSettings) -> frozenset[str]:
    """The rules to switch off. A pattern that was removed is no rule any more; raises BadPolicy at other names."""
    known = rule_names() | set(wanted.own_patterns)
    unknown = wanted.disabled_rules - known - set(current.own_patterns)
    if unknown:
        raise BadPolicy("disabled_rules", f"Unknown redaction rule: {min(unknown)[:60]!r}.")
    if always_on := wanted.disabled_rules & ALWAYS_ON - set(wanted.own_patterns):
        raise BadPolicy("disabled_rules", f"The rule {min(always_on)} cannot be turned off.")
    return wanted.disabled_rules & known


def _checked(patterns: Mapping[str, str]) -> dict[str, str]:
    if len(patterns) > MOST_PATTERNS:
        raise BadPolicy("own_patterns", f"At most {MOST_PATTERNS} patterns, not {len(patterns)}.")
    try:
        compile_all(patterns)
    except BadPattern as refusal:
        raise BadPolicy("own_patterns", str(refusal)) from None
    return dict(sorted(patterns.items()))


def _revert(current: TeamSettings, undone: TeamSettings, before: TeamSettings) -> TeamSettings:
    plain = ("stores_content", "content_days", "metrics_days", "proxy_additions")
    back = {name: getattr(before, name) for name in plain if getattr(undone, name) != getattr(before, name)}
    flat = [lay_flat(each.thresholds) for each in (current, undone, before)]
    return replace(
        current,
        thresholds=stand_up(_revert_values(*flat)),
        own_patterns=_revert_values(current.own_patterns, undone.own_patterns, before.own_patterns),
        disabled_rules=frozenset(
            _revert_values(*(dict.fromkeys(each.disabled_rules, True) for each in (current, undone, before)))
        ),
        own_prices=_revert_values(current.own_prices, undone.own_prices, before.own_prices),
        **back,
    )


def _revert_values(current: Mapping[K, V], undone: Mapping[K, V], before: Mapping[K, V]) -> dict[K, V]:
    changed = {name for name in {*undone, *before} if undone.get(name) != before.get(name)}
    kept = {name: value for name, value in current.items() if name not in changed}
    return kept | {name: value for name, value in before.items() if name in changed}


def _say_overtaken(team: Team) -> str:
    newest = TeamPolicy.objects.filter(team=team).order_by("-version").first()
    who = newest.changed_by_name if newest else "Someone"
    return (
        f"{who} changed the policy in the meantime, so nothing was saved. Review the current values, then save again."
    )
