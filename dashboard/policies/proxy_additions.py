"""What a team lets the proxy add to its requests. Off by default: then nothing is touched. No Django here."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from compaction.errors import BadPolicy

LEAST_CLEAR_ABOVE_TOKENS, MOST_CLEAR_ABOVE_TOKENS = 1_000, 1_000_000
MOST_KEPT_RESULTS = 100


@dataclass(frozen=True, slots=True)
class ProxyAdditions:
    """`asks_diagnosis`: why the cache was missed. `clears_results`: old tool results, where a prompt is larger."""

    asks_diagnosis: bool = False
    clears_results: bool = False
    clear_above_tokens: int = 100_000
    kept_results: int = 3

    @property
    def is_any(self) -> bool:
        return self.asks_diagnosis or self.clears_results

    @property
    def clearing_words(self) -> str:
        if not self.clears_results:
            return "off"
        return f"above {self.clear_above_tokens:,} tokens, {self.kept_results} kept"

    def to_fields(self) -> dict[str, object]:
        """As a policy row keeps them; nothing where nothing was decided."""
        return {} if self == NO_ADDITIONS else asdict(self)


NO_ADDITIONS = ProxyAdditions()


def read_additions(fields: Mapping[str, object]) -> ProxyAdditions:
    """From `to_fields`; names that are not known any more say nothing."""
    known = {name: fields[name] for name in ProxyAdditions.__slots__ if name in fields}
    return ProxyAdditions(**known)  # type: ignore[arg-type]


def check_additions(additions: ProxyAdditions) -> ProxyAdditions:
    """Raises BadPolicy."""
    if not LEAST_CLEAR_ABOVE_TOKENS <= additions.clear_above_tokens <= MOST_CLEAR_ABOVE_TOKENS:
        raise BadPolicy(
            "clear_above_tokens", f"From {LEAST_CLEAR_ABOVE_TOKENS:,} to {MOST_CLEAR_ABOVE_TOKENS:,} tokens."
        )
    if not 1 <= additions.kept_results <= MOST_KEPT_RESULTS:
        raise BadPolicy("kept_results", f"From 1 to {MOST_KEPT_RESULTS} results.")
    return additions
