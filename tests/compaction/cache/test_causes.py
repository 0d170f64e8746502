import pytest

from compaction.cache.causes import API_REASONS, CAUSES, CLIENT_REASONS, Avoidability, Cause, Family, Grade, rank_cause


@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_says_what_it_means_and_what_to_do(cause: Cause) -> None:
    note = CAUSES[cause]
    assert note.code is cause
    for sentence in (note.title, note.meaning, note.advice):
        assert sentence[0].isupper()
        assert sentence.endswith(".")
    assert note.grades


def test_rebuilds_are_expected_and_nothing_else_is() -> None:
    expected = {cause for cause, note in CAUSES.items() if note.outlook is Avoidability.EXPECTED}
    assert expected == {cause for cause, note in CAUSES.items() if note.family is Family.REBUILD}
    assert expected == {
        Cause.FIRST_CALL, Cause.COMPACTED, Cause.MICRO_COMPACTED, Cause.DELETION_ANNOUNCED, Cause.REWOUND,
        Cause.PROMPT_SHORTENED,
    }  # fmt: skip


def test_names_of_api_and_client_lead_to_causes_that_admit_those_grades() -> None:
    assert all(Grade.API in CAUSES[cause].grades for cause in API_REASONS.values())
    assert all(Grade.CLIENT in CAUSES[cause].grades for cause in CLIENT_REASONS.values())


def test_causes_nearer_to_the_start_of_the_prefix_rank_first() -> None:
    found = {Cause.MESSAGES_REWRITTEN, Cause.SYSTEM_CHANGED, Cause.MODEL_CHANGED, Cause.TOOLS_CHANGED}
    assert sorted(found, key=rank_cause) == [
        Cause.MODEL_CHANGED, Cause.TOOLS_CHANGED, Cause.SYSTEM_CHANGED, Cause.MESSAGES_REWRITTEN,
    ]  # fmt: skip


def test_what_is_not_known_is_not_said_to_be_outside_of_control() -> None:
    unsure = {cause for cause, note in CAUSES.items() if note.outlook is Avoidability.NOT_KNOWN}
    assert unsure >= {cause for cause, note in CAUSES.items() if note.family is Family.UNKNOWN}
    for cause, note in CAUSES.items():
        words = f"{note.title} {note.meaning} {note.advice}"
        if "not known" in words or "gateway" in note.advice:
            assert note.outlook is not Avoidability.NOBODY, cause


def test_what_nobody_can_change_is_not_called_avoidable() -> None:
    assert not CAUSES[Cause.LIKELY_SERVER_SIDE].is_avoidable
    assert not CAUSES[Cause.UNEXPLAINED].is_avoidable
    assert CAUSES[Cause.TTL_EXPIRED_5M].is_avoidable
