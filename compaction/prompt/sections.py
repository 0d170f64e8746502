"""Sections of a system prompt: each is computed once and kept until the conversation is cleared or compacted, or marked
as changing every turn, with a reason, because such a section breaks the cache whenever it changes."""

from collections.abc import Callable
from dataclasses import dataclass, field

from compaction.errors import SectionNameTaken, UnreasonedSection

Compute = Callable[[], str | None]

# The client's text between what all users share and what belongs to one of them.
DYNAMIC_BOUNDARY = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__"


@dataclass(frozen=True, slots=True)
class SystemSection:
    """One part of a system prompt; `reason` is set for one that is computed every turn."""

    name: str
    compute: Compute
    reason: str | None = None

    @property
    def is_volatile(self) -> bool:
        """Return whether it is computed every turn."""
        return self.reason is not None


@dataclass(slots=True)
class SectionRegistry:
    """The sections of one conversation, shared ones first, then the boundary, then its own."""

    shared: list[SystemSection] = field(default_factory=list)
    personal: list[SystemSection] = field(default_factory=list)
    _texts: dict[str, str | None] = field(default_factory=dict)

    def add(self, name: str, compute: Compute, *, is_shared: bool = False) -> None:
        """Add a section that is computed once."""
        self._register(SystemSection(name, compute), is_shared=is_shared)

    def add_volatile(self, name: str, compute: Compute, *, reason: str) -> None:
        """Add a section that is computed every turn; it is never shared."""
        if not reason.strip():
            raise UnreasonedSection(name)
        self._register(SystemSection(name, compute, reason.strip()), is_shared=False)

    def resolve(self) -> tuple[str, ...]:
        """Return the texts in order with the boundary between them; sections without text are left out."""
        shared = [text for section in self.shared if (text := self._compute(section))]
        personal = [text for section in self.personal if (text := self._compute(section))]
        return (*shared, DYNAMIC_BOUNDARY, *personal)

    def clear(self) -> None:
        """Remove all computed texts, as /clear and /compact do."""
        self._texts.clear()

    def _register(self, section: SystemSection, *, is_shared: bool) -> None:
        if any(other.name == section.name for other in (*self.shared, *self.personal)):
            raise SectionNameTaken(section.name)
        (self.shared if is_shared else self.personal).append(section)

    def _compute(self, section: SystemSection) -> str | None:
        if section.is_volatile:
            return section.compute()
        if section.name not in self._texts:
            self._texts[section.name] = section.compute()
        return self._texts[section.name]
