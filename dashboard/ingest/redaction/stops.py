"""The places in bytes that need a closer look: one pass finds every expression of a table at once (Vectorscan)."""

import threading
from collections.abc import Iterable, Iterator, Sequence

import hyperscan

WINDOW = 256 * 1024  # bytes looked at in one go: bounds how many places are held for a text of nothing but literals
_OVERLAP = 128  # more than the longest expression


class Stops:
    """Expressions are of a bounded length and without lookaround."""

    def __init__(self, exact: Sequence[bytes], any_case: Sequence[bytes], by_end: Sequence[bytes] = ()) -> None:
        """Of expressions in `by_end`, which are numbered last, the end is the place: starts are costly to know."""
        expressions = [*exact, *any_case, *by_end]
        flags = [hyperscan.HS_FLAG_SOM_LEFTMOST] * len(exact)
        flags += [hyperscan.HS_FLAG_SOM_LEFTMOST | hyperscan.HS_FLAG_CASELESS] * len(any_case)
        flags += [0] * len(by_end)
        self._first_by_end = len(exact) + len(any_case)
        self._database = hyperscan.Database()
        self._database.compile(
            expressions=expressions, ids=range(len(expressions)), elements=len(expressions), flags=flags
        )
        self._of_thread = threading.local()

    def find(self, data: bytes) -> Iterable[tuple[int, int]]:
        """Place and number of each expression found (those of any case follow the exact ones), in order."""
        return self._scan(data) if len(data) <= WINDOW else self._find_in_windows(data)

    def _find_in_windows(self, data: bytes) -> Iterator[tuple[int, int]]:
        for begin in range(0, len(data), WINDOW):
            window = data[begin : begin + WINDOW + _OVERLAP]
            for at, number in self._scan(window):
                if at < WINDOW or number >= self._first_by_end:  # what ends in the overlap may have begun before it
                    yield begin + at, number

    def _scan(self, window: bytes) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []

        first_by_end = self._first_by_end

        def note(number: int, start: int, end: int, _flags: int, _context: object) -> None:
            found.append((start if number < first_by_end else end - 1, number))

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
