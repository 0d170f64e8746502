"""State of one thread between its turns, and its reset after a compaction."""

from dataclasses import dataclass, field

from compaction.compactors.breaker import Breaker
from compaction.compactors.micro.cache_edits import CacheEditState
from compaction.compactors.micro.clearing import MicroTracker
from compaction.context.tokens import ResultCache
from compaction.prompt.sections import SectionRegistry


@dataclass(slots=True)
class ThreadState:
    """State of one thread. Each thread has its own, so a compaction of one leaves the others unchanged.

    Break detection reads a compaction from its boundary, and the files that were read are found in the transcript each
    time: neither is stored here.
    """

    micro: MicroTracker = field(default_factory=MicroTracker)
    cache_edits: CacheEditState = field(default_factory=CacheEditState)
    token_cache: ResultCache = field(default_factory=ResultCache)
    sections: SectionRegistry = field(default_factory=SectionRegistry)
    breaker: Breaker = field(default_factory=Breaker)

    def reset_after_compaction(self) -> None:
        """Reset everything that refers to the conversation before the compaction."""
        self.micro.reset()
        self.cache_edits = CacheEditState()
        self.token_cache.clear()
        self.sections.clear()
        self.breaker = Breaker()
