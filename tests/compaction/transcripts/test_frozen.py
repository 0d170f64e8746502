"""Values filled fast are the same frozen values."""

import pickle
from dataclasses import FrozenInstanceError

import pytest

from compaction.transcripts.entries import Iteration
from compaction.transcripts.frozen import make_filler


def test_a_filled_value_is_equal_frozen_and_can_be_pickled() -> None:
    filled = make_filler(Iteration)("message", "m", 1, 2, 3, 3, 0, 4)
    assert filled == Iteration("message", "m", 1, 2, 3, 3, 0, 4)
    assert type(filled) is Iteration
    assert pickle.loads(pickle.dumps(filled)) == filled
    with pytest.raises(FrozenInstanceError):
        filled.model = "other"  # type: ignore[misc]


def test_a_forgotten_field_is_refused() -> None:
    with pytest.raises(TypeError):
        make_filler(Iteration)("message")
