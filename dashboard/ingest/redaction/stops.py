"""The places in bytes that need a closer look: one pass finds every expression of a table at once (Vectorscan)."""

import threading
from collections.abc import Iterator, Sequence

import hyperscan

WINDOW = 256 * 1024  # bytes looked at in one go: bounds how many places are held for a text of nothing but literals
_OVERLAP = 64  # more than the longest expression


class Stops:
    """Expressions are of a bounded length and without lookaround."""

    def __init__(self, exact: Sequence[bytes], any_case: Sequence[bytes]) -> None:
        expressions = [*exact, *any_case]
        flags = [hyperscan.HS_FLAG_SOM_LEFTMOST] * len(exact)
        flags += [hyperscan.HS_FLAG_SOM_LEFTMOST | hyperscan.HS_FLAG_CASELESS] * len(any_case)
        self._database = hyperscan.Database()
        self._database.compile(
            expressions=expressions, ids=range(len(expressions)), elements=len(expressions), flags=flags
        )
        self._of_thread = threading.local()

    def find(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Start and number of the expression (those of any case follow the exact ones), in order."""
        for begin in range(0, len(data), WINDOW):
            window = data[begin : begin + WINDOW + _OVERLAP] if len(data) > WINDOW else data
            yield from ((begin + at, number) for at, number in self._scan(window) if at < WINDOW)

    def _scan(self, window: bytes) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []

        def note(number: int, start: int, _end: int, _flags: int, _context: object) -> None:
            found.append((start, number))

        self._database.scan(window, match_event_handler=note, scratch=self._scratch())
        found.sort()
        return found

    def _scratch(self) -> hyperscan.Scratch:
        """One for each thread: a scan lets other threads run, and two scans must not share one."""
        try:
            scratch: hyperscan.Scratch = self._of_thread.scratch
        except AttributeError:
            scratch = self._of_thread.scratch = hyperscan.Scratch(self._database)
        return scratch
