"""The rules as people know them: one for each name that a mark can carry, and which of them stay on."""

from dataclasses import dataclass
from functools import cache

from dashboard.ingest.redaction.forms import ASSIGNED, FORMS

# A key of Plimsoll in stored text would let everybody who reads that text act as its owner in Plimsoll itself. A
# private key block cannot be mistaken for anything else, and opens servers: its rule has no false hits worth the risk.
ALWAYS_ON = frozenset({"plimsoll-key", "private-key"})


@dataclass(frozen=True)
class Rule:
    """A built-in rule. Several forms may share one name: they leave the same mark."""

    name: str
    what: str

    @property
    def is_always_on(self) -> bool:
        return self.name in ALWAYS_ON


@cache
def list_rules() -> tuple[Rule, ...]:
    """Return the built-in rules by name."""
    whats: dict[str, list[str]] = {}
    for form in (*FORMS, *ASSIGNED):
        # "password" would say nothing about the rule password.
        what = f"value given to a name such as {form.name}" if form.what == form.name else form.what
        whats.setdefault(form.name, []).append(what)
    return tuple(Rule(name, "; ".join(dict.fromkeys(what))) for name, what in sorted(whats.items()))


@cache
def rule_names() -> frozenset[str]:
    """Return the names of the built-in rules."""
    return frozenset(rule.name for rule in list_rules())
