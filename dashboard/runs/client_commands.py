"""Commands of the client for people to copy: whatever a transcript called its folder, it stays one word."""

import shlex
from pathlib import PurePosixPath


def write_resume_command(cwd: str, external_id: str) -> str:
    """Goes on with a session that was written for it."""
    return _from_folder(cwd, f"claude --resume {shlex.quote(external_id)}")


def write_compact_command(cwd: str, external_id: str, instructions: str) -> str:
    """Makes the client compact a session by itself."""
    words = " ".join(f"/compact {instructions}".split())
    return _from_folder(cwd, f"claude -p --resume {shlex.quote(external_id)} {shlex.quote(words)}")


def _from_folder(cwd: str, command: str) -> str:
    """Without the folder where its name could do something to a terminal, or depends on where the terminal stands."""
    is_safe = cwd.isprintable() and PurePosixPath(cwd).is_absolute()
    return f"cd {shlex.quote(cwd)} && {command}" if is_safe else command
