"""A rule that is switched off leaves no mark; all others leave theirs as before."""

from hypothesis import given
from hypothesis import strategies as st

from dashboard.ingest.redaction import ALWAYS_ON, MARKS, Redactor, list_rules, rule_names
from tests.dashboard.ingest.planted_secrets import PLANTED

OWN = {"badge": "B-[0-9]{6}", "berth": "berth [0-9]{4}"}
NAMES = sorted(rule_names() | set(OWN))
texts = st.lists(
    st.sampled_from([planted.text for planted in PLANTED] + ["B-123456", "berth 4711", "plain words", "\n"]), max_size=6
).map(" | ".join)


@given(texts, st.sets(st.sampled_from(NAMES), max_size=5))
def test_a_disabled_rule_never_leaves_its_mark_and_the_others_are_unchanged(text: str, disabled: set[str]) -> None:
    data = text.encode()
    redacted = Redactor.with_own(OWN, disabled).redact(data)
    assert not disabled & redacted.counts.keys()
    assert not {mark[10:-1].decode() for mark in MARKS.findall(redacted.data)} & disabled
    everything = Redactor.with_own(OWN).redact(data)
    if not disabled & everything.counts.keys():
        assert redacted == everything


def test_each_rule_can_be_switched_off_alone() -> None:
    for planted in PLANTED:
        data = f"Use {planted.text} please.".encode()
        names = Redactor.default().redact(data).counts.keys()
        left = Redactor(disabled=frozenset(names)).redact(data)
        assert not names & left.counts.keys(), planted.form


def test_rules_are_listed_once_by_name_and_say_what_they_find() -> None:
    names = [rule.name for rule in list_rules()]
    assert names == sorted(set(names))
    assert all(rule.what for rule in list_rules())
    assert {rule.name for rule in list_rules() if rule.is_always_on} == ALWAYS_ON
    assert {planted.form for planted in PLANTED} <= rule_names()
