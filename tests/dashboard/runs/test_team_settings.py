"""What a team's summariser may use: sealed keys, defaults, prices, and changes that are checked and told."""

from decimal import Decimal

import pytest
from django.utils import timezone
from pytest_django import Settings

from compaction.llm.lookup import get_small_model, list_offered_models
from compaction.llm.prices import get_list_price
from dashboard.accounts.refusals import Refused
from dashboard.models import AuditEvent, SummarizerSettings, Team, User
from dashboard.runs.settings_changes import (
    BadChoice,
    SettingsChange,
    change_settings,
    find_faults,
    forget_key,
    set_key,
)
from dashboard.runs.team_key import KeyUnreadable, open_key, seal_key
from dashboard.runs.team_settings import KeyOrigin, NoKey, find_key, find_settings
from tests.builders import make_team, make_user

pytestmark = pytest.mark.django_db

KEY, OTHER_KEY = "sk-ant-api03-first-key-abcd", "sk-ant-api03-other-key-wxyz"


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="olga", admin="anna")


@pytest.fixture
def anna(team: Team) -> User:
    return make_user("anna")


def test_sealed_key_opens_for_its_team_alone_and_looks_different_every_time(team: Team) -> None:
    sealed = seal_key(team, KEY)
    assert KEY.encode() not in sealed
    assert open_key(team, sealed) == KEY
    assert seal_key(team, KEY) != sealed
    with pytest.raises(KeyUnreadable):
        open_key(make_team("Quay", owner="otto"), sealed)


@pytest.mark.parametrize("damage", [b"", b"\x01", b"\x01short", b"\x02" + b"x" * 60, b"\x01" + b"x" * 60])
def test_damaged_sealed_key_is_a_sentence_and_not_a_crash(team: Team, damage: bytes) -> None:
    with pytest.raises(KeyUnreadable, match="Set the API key again"):
        open_key(team, damage)


def test_without_any_choice_the_defaults_hold(team: Team) -> None:
    choice = find_settings(team)
    assert (choice.has_key, choice.key_origin, choice.key_problem) == (False, KeyOrigin.NONE, "")
    assert (choice.model, choice.small_model, choice.allows_fork) == ("", get_small_model(), True)
    assert choice.daily_cap_usd == Decimal(5)
    with pytest.raises(NoKey, match="No API key is set"):
        find_key(team)


def test_small_model_on_record_is_the_newest_and_has_a_price() -> None:
    assert get_small_model() == "claude-haiku-5-5"
    offered = list_offered_models()
    assert offered.index("claude-opus-5-5") < offered.index("claude-opus-5") < offered.index("claude-haiku-4-5")
    assert all(get_list_price(model, None) is not None for model in offered)
    assert "claude-3-haiku" not in offered


def test_operators_key_serves_teams_without_one_of_their_own(team: Team, anna: User, settings: Settings) -> None:
    settings.ANTHROPIC_API_KEY = OTHER_KEY
    assert find_settings(team).key_origin is KeyOrigin.OPERATOR
    assert find_key(team) == OTHER_KEY
    set_key(team, KEY, by=anna)
    assert (find_settings(team).key_origin, find_settings(team).key_hint) == (KeyOrigin.TEAM, "…abcd")
    assert find_key(team) == KEY
    assert forget_key(team, by=anna)
    assert find_key(team) == OTHER_KEY
    assert not forget_key(team, by=anna)


def test_key_sealed_under_another_secret_is_not_replaced_by_the_operators_in_silence(
    team: Team, anna: User, settings: Settings
) -> None:
    set_key(team, KEY, by=anna)
    settings.ANTHROPIC_API_KEY = OTHER_KEY
    settings.SECRET_KEY = "another secret " * 4
    choice = find_settings(team)
    assert (choice.has_key, choice.key_origin) == (False, KeyOrigin.TEAM)
    assert "this installation's secret key has changed" in choice.key_problem
    with pytest.raises(KeyUnreadable):
        find_key(team)
    set_key(team, OTHER_KEY, by=anna)
    assert find_settings(team).has_key


def test_key_is_in_no_column_and_no_audit_event(team: Team, anna: User) -> None:
    set_key(team, f"  {KEY}\n", by=anna)
    set_key(team, OTHER_KEY, by=anna)
    forget_key(team, by=anna)
    set_key(team, KEY, by=anna)
    row = SummarizerSettings.objects.get()
    stored = repr([(field.name, getattr(row, field.attname)) for field in row._meta.concrete_fields])
    told = [(event.subject, event.told_details, event.actor_name) for event in AuditEvent.objects.order_by("id")]
    assert [subject for subject, _, _ in told if "API key" in subject] == [
        "API key set",
        "API key replaced",
        "API key removed",
        "API key set",
    ]
    assert told[-1] == ("API key set", "key: …abcd", "anna")
    for secret in (KEY, OTHER_KEY, KEY[:20]):
        assert secret not in stored + repr(told) + repr(find_settings(team))


@pytest.mark.parametrize("text", ["", "short", "two words in a key of length", "sk-ant-ünïcode-key-0000", "x" * 401])
def test_what_can_be_no_key_is_refused_without_being_repeated(team: Team, anna: User, text: str) -> None:
    with pytest.raises(BadChoice, match="Invalid API key") as caught:
        set_key(team, text, by=anna)
    assert not text or text not in str(caught.value)
    assert not SummarizerSettings.objects.exists()


def test_changes_are_saved_told_and_written_once(team: Team, anna: User) -> None:
    change = SettingsChange(
        model="claude-opus-5-5",
        small_model="none",
        allows_fork=False,
        daily_cap_usd="$1,250.50",
        own_prices={"us.anthropic.claude-mythos-5-2": ("10", "50.0", "", "", "0.25")},
    )
    change_settings(team, change, by=anna, stamp="")
    choice = find_settings(team)
    assert (choice.model, choice.small_model, choice.allows_fork) == ("claude-opus-5-5", "", False)
    assert choice.daily_cap_usd == Decimal("1250.50")
    price = choice.find_price("claude-mythos-5-2", timezone.now())
    assert price is not None
    assert (price.rates.output_mtok_usd, price.rates.write_5m_mtok_usd) == (Decimal(50), Decimal("12.5"))
    assert choice.changed_by_name == "anna"
    before = AuditEvent.objects.count()
    change_settings(team, change, by=anna, stamp="whatever")
    assert AuditEvent.objects.count() == before, "what is in force already writes nothing"
    details = AuditEvent.objects.latest("id").told_details
    assert "daily cap: $5.00 to $1250.50" in details
    assert "model: the session's own to claude-opus-5-5" in details


def test_what_another_person_changed_meanwhile_is_not_overwritten(team: Team, anna: User) -> None:
    looked_at = find_settings(team).stamp
    change_settings(team, SettingsChange(daily_cap_usd="7"), by=make_user("olga"), stamp=looked_at)
    with pytest.raises(Refused, match="olga changed these settings in the meantime"):
        change_settings(team, SettingsChange(daily_cap_usd="9"), by=anna, stamp=looked_at)
    assert find_settings(team).daily_cap_usd == Decimal(7)
    change_settings(team, SettingsChange(daily_cap_usd="9"), by=anna, stamp=find_settings(team).stamp)
    assert find_settings(team).daily_cap_usd == Decimal(9)


FAULTS = [
    (SettingsChange(model="two words"), "model"),
    (SettingsChange(small_model="<script>"), "small_model"),
    (SettingsChange(model="x" * 201), "model"),
    (SettingsChange(daily_cap_usd="-1"), "daily_cap_usd"),
    (SettingsChange(daily_cap_usd=""), "daily_cap_usd"),
    (SettingsChange(daily_cap_usd="NaN"), "daily_cap_usd"),
    (SettingsChange(daily_cap_usd="1,5"), "daily_cap_usd"),
    (SettingsChange(daily_cap_usd="100000.01"), "daily_cap_usd"),
    (SettingsChange(own_prices={"m": ("", "1", "", "", "")}), "input"),
    (SettingsChange(own_prices={"m": ("1", "a lot", "", "", "")}), "output"),
    (SettingsChange(own_prices={"m": ("1", "1", "", "", "1e9")}), "read"),
    (SettingsChange(own_prices={"": ("1", "1", "", "", "")}), "model"),
    (SettingsChange(own_prices={f"m{number}": ("1", "1", "", "", "") for number in range(51)}), "own_prices"),
]


@pytest.mark.parametrize(("change", "field"), FAULTS)
def test_bad_value_is_refused_with_a_sentence_at_its_field(
    team: Team, anna: User, change: SettingsChange, field: str
) -> None:
    [fault] = find_faults(change)
    assert fault.field == field
    assert fault.sentence.endswith(".")
    with pytest.raises(BadChoice):
        change_settings(team, change, by=anna)
    assert not SummarizerSettings.objects.exists()
