"""How far an import is: one line that is drawn over on a terminal, a line now and then anywhere else."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

BAR_CELLS = 24
DRAW_EVERY_SECONDS = 0.1
TELL_EVERY_SECONDS = 5.0
# The first moments say nothing about the rest.
_ESTIMATE_AFTER_SECONDS = 0.5


@dataclass
class Progress:
    """Counts files and bytes; `out` None: says nothing."""

    out: TextIO | None
    file_total: int
    byte_total: int  # 0: not known, as for a pipe
    clock: Callable[[], float] = time.monotonic
    file_count: int = 0
    byte_count: int = 0

    def __post_init__(self) -> None:
        self._began_at = self._told_at = self.clock()
        self._is_terminal = self.out is not None and self.out.isatty()
        self._has_drawn = False

    def add(self, *, size_bytes: int = 0, files: int = 0) -> None:
        self.byte_count += size_bytes
        self.file_count += files
        every_seconds = DRAW_EVERY_SECONDS if self._is_terminal else TELL_EVERY_SECONDS
        if self.out is not None and self.clock() - self._told_at >= every_seconds:
            self._told_at = self.clock()
            self._tell(self.out)

    def close(self) -> None:
        """Leaves a clean line behind."""
        if self.out is not None and self._has_drawn:
            self.out.write("\r\x1b[K")
            self.out.flush()

    def _tell(self, out: TextIO) -> None:
        if self._is_terminal:
            self._has_drawn = True
            out.write(f"\r{self.describe_bar()}{self.describe()}\x1b[K")
        else:
            out.write(f"{self.describe()}\n")
        out.flush()

    def describe_bar(self) -> str:
        if not self.byte_total:
            return ""
        filled = min(BAR_CELLS, BAR_CELLS * self.byte_count // self.byte_total)
        return f"[{'#' * filled}{'.' * (BAR_CELLS - filled)}] "

    def describe(self) -> str:
        seconds = self.clock() - self._began_at
        rate = self.byte_count / seconds if seconds > 0 else 0.0
        files = f"{self.file_count:,} of {self.file_total:,} files" if self.file_total else ""
        size = f"{self.byte_count / 1e6:,.0f}"
        size += f" of {self.byte_total / 1e6:,.0f} MB" if self.byte_total else " MB"
        left = ""
        if self.byte_total and rate and seconds >= _ESTIMATE_AFTER_SECONDS:
            left = f"{format_seconds(max(0, self.byte_total - self.byte_count) / rate)} left"
        return ", ".join(part for part in (files, size, f"{rate / 1e6:,.0f} MB/s", left) if part)


def format_seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
