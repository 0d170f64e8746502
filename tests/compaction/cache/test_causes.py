"""The table of causes: texts, grades, and the places that detect each cause."""

import inspect
import re
from importlib import import_module

import pytest

from compaction.cache.breaks import EXPECTED_CAUSES
from compaction.cache.causes import (
    API_REASONS,
    CAUSES,
    CLIENT_REASONS,
    Avoidability,
    Cause,
    Detector,
    Family,
    Grade,
    rank_cause,
)

# In order of weight in `breaks`, whether detected there or not.
EXPECTED = set(EXPECTED_CAUSES)


@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_says_what_it_means_and_what_to_do(cause: Cause) -> None:
    note = CAUSES[cause]
    assert note.code is cause
    for sentence in (note.title, note.meaning, note.advice):
        assert sentence[0].isupper()
        assert sentence.endswith(".")
    assert note.grades


def test_rebuilds_are_expected_and_nothing_else_is() -> None:
    expected = {cause for cause, note in CAUSES.items() if note.avoidability is Avoidability.EXPECTED}
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
    unsure = {cause for cause, note in CAUSES.items() if note.avoidability is Avoidability.NOT_KNOWN}
    assert unsure >= {cause for cause, note in CAUSES.items() if note.family is Family.UNKNOWN}
    for cause, note in CAUSES.items():
        words = f"{note.title} {note.meaning} {note.advice}"
        if "not known" in words or "gateway" in note.advice:
            assert note.avoidability is not Avoidability.UNAVOIDABLE, cause


def test_what_nobody_can_change_is_not_called_avoidable() -> None:
    assert not CAUSES[Cause.LIKELY_SERVER_SIDE].is_avoidable
    assert not CAUSES[Cause.UNEXPLAINED].is_avoidable
    assert CAUSES[Cause.TTL_EXPIRED_5M].is_avoidable


DETECTING_MODULES = {detector.symbol.partition(".")[0] for detector in Detector} - {"causes"}


@pytest.mark.parametrize("detector", list(Detector))
def test_detectors_are_symbols_that_detect_some_cause(detector: Detector) -> None:
    module, name = detector.symbol.split(".")
    assert hasattr(import_module(f"compaction.cache.{module}"), name)
    assert any(detector in info.detectors for info in CAUSES.values())


def test_reasons_of_api_and_client_are_the_detectors_of_their_causes() -> None:
    for detector, reasons in ((Detector.API, API_REASONS), (Detector.CLIENT, CLIENT_REASONS)):
        assert {cause for cause, info in CAUSES.items() if detector in info.detectors} == set(reasons.values())


@pytest.mark.parametrize("module", sorted(DETECTING_MODULES))
def test_every_cause_names_the_modules_that_detect_it(module: str) -> None:
    named = {
        cause
        for cause, info in CAUSES.items()
        if any(detector.symbol.startswith(f"{module}.") for detector in info.detectors)
    }
    source = inspect.getsource(import_module(f"compaction.cache.{module}"))
    mentioned = {Cause[name] for name in re.findall(r"\bCause\.([A-Z0-9_]+)", source)}
    assert mentioned - (EXPECTED if module == "breaks" else set()) <= named <= mentioned
