"""The deletion plan names every model, and every column of text of what belongs to a session."""

from collections.abc import Iterator

import pytest
from django.apps import apps
from django.db.models import BinaryField, CharField, GeneratedField, JSONField, Model, TextField

from dashboard.models import AgentSession
from dashboard.retention.plan import CONTENT, FATES, LABELS, Fate

MODELS = list(apps.get_app_config("dashboard").get_models())


def _find_parents(model: type[Model]) -> set[type[Model]]:
    return {field.related_model for field in model._meta.fields if field.is_relation}  # type: ignore[misc]


def _belongs_to_session(model: type[Model]) -> bool:
    """By a chain of foreign keys, however long."""
    seen, waiting = set[type[Model]](), [model]
    while waiting:
        here = waiting.pop()
        if here is AgentSession:
            return True
        seen.add(here)
        waiting += _find_parents(here) - seen
    return False


def _list_texts(model: type[Model]) -> Iterator[str]:
    for field in model._meta.concrete_fields:
        told = field.output_field if isinstance(field, GeneratedField) else field
        if isinstance(told, CharField | TextField | JSONField | BinaryField):
            yield field.name


def test_plan_names_every_model() -> None:
    assert set(FATES) == set(MODELS)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_what_belongs_to_a_session_does_not_stay(model: type[Model]) -> None:
    assert (FATES[model] in (Fate.GOES, Fate.FORGETS)) == _belongs_to_session(model)


@pytest.mark.parametrize("model", [each for each in MODELS if FATES[each] is not Fate.STAYS], ids=lambda m: m.__name__)
def test_every_text_of_a_session_is_content_or_a_label(model: type[Model]) -> None:
    content, labels = CONTENT.get(model, frozenset()), LABELS.get(model, frozenset())
    assert not content & labels
    assert content | labels == set(_list_texts(model))
