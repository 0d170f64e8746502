"""What a team lets the proxy add to its requests. Off by default: then nothing is touched. No Django here."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from compaction.errors import BadPolicy

LEAST_CLEAR_ABOVE_TOKENS, MOST_CLEAR_ABOVE_TOKENS = 1_000, 1_000_000
MOST_KEPT_RESULTS = 100


@dataclass(frozen=True, slots=True)
class ProxyAdditions:
    """`asks_diagnosis`: why the cache was missed. `clears_results`: old tool results, where a prompt is larger, and
    only where so much goes at once that it is worth the rewrite."""

    asks_diagnosis: bool = False
    clears_results: bool = False
    clear_above_tokens: int = 100_000
    kept_results: int = 3
    least_cleared_tokens: int = 60_000  # as the engine reckons: down to 40,000 at once

    @property
    def is_any(self) -> bool:
        return self.asks_diagnosis or self.clears_results

    @property
    def clearing_words(self) -> str:
        if not self.clears_results:
            return "off"
        least = f", at least {self.least_cleared_tokens:,} at once" if self.least_cleared_tokens else ""
        return f"above {self.clear_above_tokens:,} tokens, {self.kept_results} kept{least}"

    def to_fields(self) -> dict[str, object]:
        """As a policy row keeps them; nothing where nothing was decided."""
        return {} if self == NO_ADDITIONS else asdict(self)


NO_ADDITIONS = ProxyAdditions()


def read_additions(fields: Mapping[str, object]) -> ProxyAdditions:
    """From `to_fields`; names that are not known any more say nothing. What was decided before there was a least
    amount was decided without one."""
    if not fields:
        return NO_ADDITIONS
    known = {"least_cleared_tokens": 0} | {name: fields[name] for name in ProxyAdditions.__slots__ if name in fields}
    return ProxyAdditions(**known)  # type: ignore[arg-type]


def check_additions(additions: ProxyAdditions) -> ProxyAdditions:
    """Raises BadPolicy."""
    if not LEAST_CLEAR_ABOVE_TOKENS <= additions.clear_above_tokens <= MOST_CLEAR_ABOVE_TOKENS:
        raise BadPolicy(
            "clear_above_tokens", f"Enter {LEAST_CLEAR_ABOVE_TOKENS:,} to {MOST_CLEAR_ABOVE_TOKENS:,} tokens."
        )
    if not 1 <= additions.kept_results <= MOST_KEPT_RESULTS:
        raise BadPolicy("kept_results", f"Enter 1 to {MOST_KEPT_RESULTS} results.")
    if not 0 <= additions.least_cleared_tokens < additions.clear_above_tokens:
        raise BadPolicy("least_cleared_tokens", "Enter 0 or more, below the size above which results are cleared.")
    return additions
