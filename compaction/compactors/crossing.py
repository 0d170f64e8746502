"""Crossings of the auto line: one answer per crossing, and when the next one counts as new."""

from dataclasses import dataclass, replace
from enum import StrEnum

REARM_PERCENT = 5  # below the line, as the product has it: small ups and downs are one crossing


class CrossingAnswer(StrEnum):
    """What a team wants done about a crossed line. Nothing that costs money unless somebody chose it."""

    OFF = "off"
    SUGGEST = "suggest"
    RUN = "run"


DEFAULT_ANSWER = CrossingAnswer.SUGGEST


@dataclass(frozen=True, slots=True)
class CrossingWatch:
    """Whether the next crossing is a new one, and the last boundary seen."""

    is_armed: bool = True
    boundary_uuid: str | None = None

    def observe(self, used_tokens: int, line_tokens: int, boundary_uuid: str | None) -> "CrossingWatch":
        """Armed again once the context is 5% below the line, or a boundary appeared."""
        is_new_boundary = boundary_uuid is not None and boundary_uuid != self.boundary_uuid
        is_far_below = used_tokens * 100 <= line_tokens * (100 - REARM_PERCENT)
        return CrossingWatch(self.is_armed or is_new_boundary or is_far_below, boundary_uuid or self.boundary_uuid)

    def answered(self) -> "CrossingWatch":
        """This crossing was dealt with."""
        return replace(self, is_armed=False)


def answer_crossing(
    watch: CrossingWatch, *, used_tokens: int, line_tokens: int, boundary_uuid: str | None, wish: CrossingAnswer
) -> tuple[CrossingWatch, CrossingAnswer]:
    """What to do now, and the watch afterwards: each crossing is answered once, by what the team wishes."""
    watch = watch.observe(used_tokens, line_tokens, boundary_uuid)
    if used_tokens < line_tokens or not watch.is_armed or wish is CrossingAnswer.OFF:
        return watch, CrossingAnswer.OFF
    return watch.answered(), wish
