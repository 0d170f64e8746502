"""What is remembered per thread, and what of it goes after a compaction. Threads never touch each other's memory."""

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from compaction.compactors.breaker import Breaker
from compaction.compactors.micro.cache_edits import CacheEditState
from compaction.compactors.micro.clearing import MicroTracker
from compaction.context.tokens import ResultCache

ThreadKey: TypeAlias = tuple[str, str | None]  # session id, and the sub-agent's id (None: the main conversation)
COMPACTED_REASON = "compacted"


@dataclass(slots=True)
class ThreadMemory:
    """Everything remembered about one thread from turn to turn."""

    micro: MicroTracker = field(default_factory=MicroTracker)
    cache_edits: CacheEditState = field(default_factory=CacheEditState)
    token_cache: ResultCache = field(default_factory=ResultCache)
    prompt_sections: dict[str, str] = field(default_factory=dict)
    read_files: dict[str, str] = field(default_factory=dict)
    cache_baseline_tokens: int | None = None
    expected_drop: str | None = None
    breaker: Breaker = field(default_factory=Breaker)
    announced_skills: frozenset[str] = frozenset()

    def clean_up(self) -> tuple[str, ...]:
        """Forget what spoke of the conversation before the compaction; the names of what was forgotten.

        Announced skill names are kept: telling them all again costs thousands of tokens and helps nobody.
        """
        forgotten = {
            "micro tracking": self.micro.has_occurred,
            "pinned edits": self.cache_edits != CacheEditState(),
            "token cache": self.token_cache != ResultCache(),
            "prompt sections": bool(self.prompt_sections),
            "read files": bool(self.read_files),
            "cache baseline": self.cache_baseline_tokens is not None,
            "failures": self.breaker != Breaker(),
        }
        self.micro.reset()
        self.cache_edits = CacheEditState()
        self.token_cache.clear()
        self.prompt_sections.clear()
        self.read_files.clear()
        # The next call reads less from the cache; break detection must take that as expected.
        self.cache_baseline_tokens, self.expected_drop = None, COMPACTED_REASON
        self.breaker = Breaker()
        return tuple(name for name, was_there in forgotten.items() if was_there)


@dataclass(slots=True)
class ThreadMemories:
    """The memories of all threads of a process, each by its own key."""

    _threads: dict[ThreadKey, ThreadMemory] = field(default_factory=dict)

    def get(self, session_id: str, agent_id: str | None = None) -> ThreadMemory:
        """The memory of one thread, made when it is first asked for."""
        return self._threads.setdefault((session_id, agent_id), ThreadMemory())

    def clean_up(self, session_id: str, agent_id: str | None = None) -> tuple[str, ...]:
        """After a compaction of this thread: only its own memory is touched."""
        return self.get(session_id, agent_id).clean_up()

    def drop(self, session_id: str, agent_id: str | None = None) -> None:
        """The thread is over."""
        self._threads.pop((session_id, agent_id), None)


def expect_drop(memory: ThreadMemory, reason: str) -> None:
    """Announce to break detection that the next read will be lower, as when results are deleted from the cache."""
    memory.expected_drop = reason


def take_expected_drop(memory: ThreadMemory) -> str | None:
    """The announced reason, once: the call after it is judged again."""
    reason, memory.expected_drop = memory.expected_drop, None
    return reason


def copy_memory(memory: ThreadMemory) -> ThreadMemory:
    """A memory for a fork of the thread: what is known now, changed apart from now on."""
    return replace(
        memory,
        micro=MicroTracker(memory.micro.has_occurred),
        token_cache=ResultCache(),
        prompt_sections=dict(memory.prompt_sections),
        read_files=dict(memory.read_files),
    )
