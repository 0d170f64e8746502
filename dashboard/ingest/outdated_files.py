"""Transcripts outside the followed folders, as imports leave them, that an earlier version of the reader read: each is
read once more, when nothing else is to be read."""

import logging
from collections.abc import Iterable, Mapping

from django.db import InterfaceError, OperationalError

from dashboard.ingest.follow_delivery import Delivery
from dashboard.ingest.followed_files import Kept, digest_path
from dashboard.ingest.followed_reading import Followed, Next, read_on, start_following
from dashboard.ingest.intake import Origin
from dashboard.ingest.record import TooBusy
from dashboard.ingest.transcript_folders import find_file

# A sub-agent's file is named by the folder of its session: SESSION/subagents/agent-ID.jsonl.
_NAMING_FOLDERS = 2

log = logging.getLogger(__name__)


class OutdatedFiles:
    """Call `read_next` while it is not empty. What cannot be read keeps its figures until the next start."""

    def __init__(self, kept: Mapping[str, Kept], roots: Iterable[str]) -> None:
        below = tuple(f"{root}/" for root in roots)
        self._waiting = [
            each
            for digest, each in kept.items()
            if each.is_outdated
            and not each.is_gone
            and not each.path.startswith(below)
            and each.path.startswith("/")
            and digest_path(each.path) == digest  # neither cut nor spelled otherwise
        ]
        self._open: Followed | None = None

    def __bool__(self) -> bool:
        return self._open is not None or bool(self._waiting)

    def read_next(self, origin: Origin, delivery: Delivery) -> None:
        """Take one look at one file. Raises what the database raises."""
        try:
            followed = self._open or _start(self._waiting.pop())
            self._open = followed
            if read_on(followed, origin, delivery) is not Next.MORE:
                self._open = None
        except TooBusy:
            return  # the next look begins where this one did
        except OSError:
            self._open = None  # it is gone, or nobody may read it any more
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:  # noqa: BLE001 (one odd file must not keep all others from being read)
            log.error("file could not be read again", extra={"error": type(error).__name__})
            self._open = None


def _start(kept: Kept) -> Followed:
    parts = kept.path.split("/")
    place = max(1, len(parts) - 1 - _NAMING_FOLDERS)
    found = find_file("/".join(parts[:place]) or "/", "/".join(parts[place:]))
    return start_following(found, kept)
