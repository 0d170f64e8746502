"""Parts of pages as HTML, each drawn once however many pages ask for it: kept by the number of the change they show."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable

KEPT_SECONDS = 2.0  # times in words and the countdown of a cache grow old without any change
MOST_KEPT = 4000


class Parts:
    def __init__(self, *, kept_seconds: float = KEPT_SECONDS) -> None:
        self.kept_seconds = kept_seconds
        self._kept: OrderedDict[Hashable, tuple[float, str]] = OrderedDict()
        self._drawing: dict[Hashable, asyncio.Task[str]] = {}

    def get(self, key: Hashable) -> str | None:
        drawn_at, text = self._kept.get(key, (0.0, ""))
        return text if drawn_at and time.monotonic() - drawn_at < self.kept_seconds else None

    def keep(self, key: Hashable, text: str) -> None:
        self._kept[key] = time.monotonic(), text
        self._kept.move_to_end(key)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    async def find(self, key: Hashable, draw: Callable[[], Awaitable[str]]) -> str:
        """Whoever asks while it is being drawn waits for that drawing."""
        kept = self.get(key)
        if kept is not None:
            return kept
        drawing = self._drawing.get(key)
        if drawing is None:
            drawing = self._drawing[key] = asyncio.ensure_future(self._draw(key, draw))
        # One who leaves must not take the drawing away from the others.
        return await asyncio.shield(drawing)

    async def _draw(self, key: Hashable, draw: Callable[[], Awaitable[str]]) -> str:
        try:
            text = await draw()
            self.keep(key, text)
        finally:
            del self._drawing[key]
        return text

    def forget(self) -> None:
        self._kept.clear()
