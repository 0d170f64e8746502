"""The headers of a captured request that decide how its body is read."""

from dataclasses import dataclass

# What clients send whose requests are repeated; a captured body may hold what the SDK's own version refuses.
CAPTURED_VERSION = "2023-06-01"


@dataclass(frozen=True, kw_only=True)
class ForkTerms:
    version: str = CAPTURED_VERSION
    betas: tuple[str, ...] = ()
