"""Which calls are judged and what counts as a loss."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from compaction.llm.lookup import UNJUDGED_FAMILIES
from compaction.llm.prices import Price, get_team_price
from compaction.transcripts.client_protocol import is_beside_conversation
from compaction.transcripts.entries import Usage

# Both must be exceeded for a loss; the client's own figures.
LOSS_SHARE_PERCENT = 5
LOSS_TOKENS = 2_000
# These models cache differently; the client neither judges them nor compares with them.
UNJUDGED_MODELS = UNJUDGED_FAMILIES
# Forks and side calls that share a session's id but not its conversation.
UNJUDGED_SOURCES = ("compact", "session_memory", "speculation", "prompt_suggestion")


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """What counts as a loss, which calls are left out, and a team's own prices by the base names of models."""

    loss_share_percent: int = LOSS_SHARE_PERCENT
    loss_tokens: int = LOSS_TOKENS
    unjudged_models: tuple[str, ...] = UNJUDGED_MODELS
    unjudged_sources: tuple[str, ...] = UNJUDGED_SOURCES
    prices: Mapping[str, Price] = field(default_factory=dict)

    def find_price(self, model: str | None) -> Price | None:
        """Return the team's own price of a model, which takes precedence over every list."""
        return get_team_price(self.prices, model)

    def judges(self, model: str | None, source: str | None, usage: Usage) -> bool:
        """Return whether a call is judged and becomes a baseline; empty usage (errors, placeholders) is neither."""
        if source in self.unjudged_sources or is_beside_conversation(source) or usage.prompt_tokens == 0:
            return False
        return not _contains_any(model or "", self.unjudged_models)

    def is_below(self, read_tokens: int, expected_tokens: int) -> bool:
        """Return whether so much less than expected was read that it counts as a loss."""
        missing = expected_tokens - read_tokens
        return missing > self.loss_tokens and missing * 100 > self.loss_share_percent * expected_tokens


DEFAULT_POLICY = CachePolicy()


@lru_cache(maxsize=256)
def _contains_any(name: str, parts: tuple[str, ...]) -> bool:
    return any(part in name.lower() for part in parts)
