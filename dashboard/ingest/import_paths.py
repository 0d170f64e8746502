"""What `plimsoll import` was pointed at: files, folders, a `.claude` home, pipes. No Django here."""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from dashboard.ingest.transcript_folders import FoundFile, find_file, walk_folders

STANDARD_INPUT = "-"
# Beside `projects` they show a client's home, whose own history.jsonl is no transcript.
_HOME_FILES = ("history.jsonl", "settings.json", "settings.local.json", ".credentials.json")


@dataclass
class Finds:
    """Everything that is there, and a sentence about everything that is not."""

    files: dict[str, FoundFile] = field(default_factory=dict)  # by path: named twice is read once
    streams: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    @property
    def transcripts(self) -> list[FoundFile]:
        """Newest first: what a person looks for is there soonest."""
        found = [file for file in self.files.values() if not file.is_meta]
        return sorted(found, key=lambda file: (-file.modified_ns, file.path))

    @property
    def metas(self) -> list[FoundFile]:
        return sorted((file for file in self.files.values() if file.is_meta), key=lambda file: file.path)


def find_paths(paths: Iterable[str]) -> Finds:
    finds = Finds()
    for path in dict.fromkeys(paths):
        if path == STANDARD_INPUT:
            finds.streams.append(path)
            continue
        try:
            mode = os.stat(path).st_mode  # noqa: PTH116 (a Path would lose a trailing slash in the message)
        except OSError as error:
            finds.refusals.append(f"{path}: {error.strerror or 'cannot be read'}.")
            continue
        if stat.S_ISDIR(mode):
            _take_folder(finds, Path(path))
        elif stat.S_ISREG(mode):
            _take_file(finds, path)
        else:
            finds.streams.append(path)
    return finds


def _take_folder(finds: Finds, folder: Path) -> None:
    walked = walk_folders((_find_projects(folder),))
    finds.files.update(walked.files)
    finds.refusals += [f"{path}: {reason}." for path, reason in sorted(walked.refused.items())]


def _find_projects(folder: Path) -> Path:
    projects = folder / "projects"
    is_home = folder.name == ".claude" or any((folder / name).is_file() for name in _HOME_FILES)
    return projects if is_home and projects.is_dir() else folder


def _take_file(finds: Finds, path: str) -> None:
    """A link that was named is meant."""
    folder, _, name = os.path.realpath(path).rpartition("/")
    try:
        found = find_file(folder or "/", name)
    except OSError as error:
        finds.refusals.append(f"{path}: {error.strerror or 'not a plain file'}.")
        return
    finds.files[found.path] = found
