"""Damage of the SQLite file: looked for before the start, recognised in errors afterwards."""

import logging
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from django.conf import settings

# Two gigabytes in a warm cache. A larger file is checked in part: starting matters more than finding all damage.
CHECK_SECONDS = 5.0
# For people who cannot restore anything themselves.
DAMAGED = "The database file is damaged. The server administrator can restore a backup."

log = logging.getLogger(__name__)
_damage_found = threading.Event()


class DatabaseDamaged(Exception):
    """The message says how to restore a backup."""


def is_damage(error: BaseException | None) -> bool:
    """Return whether SQLite found its file damaged or not to be a database. Django's errors have SQLite's as cause.

    Remembers it for `was_damage_found`: later queries may touch sound pages only."""
    cause = error if isinstance(error, sqlite3.Error) else getattr(error, "__cause__", None)
    if not isinstance(cause, sqlite3.Error):
        return False
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF  # the rest of the number says where it was found
    if code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return False
    _damage_found.set()
    return True


def was_damage_found() -> bool:
    """Return whether this process met damage. A restored backup needs a new process anyway."""
    return _damage_found.is_set()


def require_sound_database() -> None:
    """Raise DatabaseDamaged if the first seconds of SQLite's own check find damage. Does nothing on PostgreSQL."""
    database = settings.DATABASES["default"]
    path = Path(database["NAME"])
    if not database["ENGINE"].endswith("sqlite3") or not path.is_file():
        return
    with closing(sqlite3.connect(path, timeout=20, check_same_thread=False)) as checked:
        timer = threading.Timer(CHECK_SECONDS, checked.interrupt)
        timer.start()
        try:
            findings = [row[0] for row in checked.execute("PRAGMA quick_check(1)")]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise DatabaseDamaged(f"The database {path} cannot be opened: {error}.") from error
            log.info("database checked in part: it is large", extra={"seconds": CHECK_SECONDS})
            return
        except sqlite3.DatabaseError as error:
            raise DatabaseDamaged(explain_damage(str(error))) from error
        finally:
            timer.cancel()
    if findings != ["ok"]:
        raise DatabaseDamaged(explain_damage(findings[0]))


def explain_damage(finding: str) -> str:
    """Name the file, what is wrong with it, and the command that restores the newest backup."""
    path = settings.DATABASES["default"]["NAME"]
    backups = sorted((settings.DATA / "backups").glob("plimsoll-*.sqlite3"))
    file = str(backups[-1]) if backups else "FILE"
    newest = "the newest daily one" if backups else "there is no daily one in the data folder"
    return (
        f"The database {path} is damaged ({' '.join(finding.split())}). "
        f"Restore a backup, {newest}: `plimsoll restore {file}`. The damaged file is kept beside it."
    )
