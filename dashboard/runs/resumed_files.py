"""Transcripts that Plimsoll wrote: a row before the file, so that nothing of ours lies about unknown; looks; undo.

A process killed between row and file leaves a row whose file is missing: it is shown as that, and `forget_missing`
marks it. The file is there whole or not at all.
"""

import contextlib
from datetime import datetime, timedelta
from hashlib import sha256

from django.conf import settings
from django.db.models import Q

from dashboard.models import AgentSession, CompactionRun, ResumedFile, User
from dashboard.retention.deletion import delete_resumed, is_added_to
from dashboard.runs.choices import RunRefused
from dashboard.runs.watched_places import (
    FileState,
    WatchedPlace,
    create_file,
    drop_draft,
    find_place,
    find_state,
    remove_unchanged,
    require_writable_folder,
)

_CONTINUED = "The client has gone on in this session. The transcript was left as it is."
SETTLED_AFTER = timedelta(minutes=10)  # nobody is still writing a file whose row is older


def note_download(
    run: CompactionRun, external_id: str, data: bytes, *, revision_number: int, by: User | None, now: datetime
) -> ResumedFile:
    """A row without a path, so that the session is known when it comes in again."""
    columns = _describe(run, data, revision_number, by) | {"written_at": now}
    row, _ = ResumedFile.objects.update_or_create(team=run.team, external_id=external_id, defaults=columns)
    return row


def write_resumed_file(
    run: CompactionRun, place: WatchedPlace, data: bytes, *, revision_number: int, by: User | None, now: datetime
) -> ResumedFile:
    """Row first, then the file. Raises RunRefused when the file cannot be written; then there is no row either."""
    columns = _describe(run, data, revision_number, by)
    external_id = place.relative.rpartition("/")[2].removesuffix(".jsonl")
    row = ResumedFile.objects.create(team=run.team, external_id=external_id, path=place.path, written_at=now, **columns)
    try:
        create_file(place, data)
    except OSError as error:
        with contextlib.suppress(OSError):
            remove_unchanged(place, digest=row.digest, size_bytes=row.size_bytes)  # named, but not safely on the disk
        row.delete()
        raise _describe_write_error(error) from error
    return row


def require_writable(place: WatchedPlace) -> None:
    """Raise RunRefused where no file can be written beside this one."""
    try:
        require_writable_folder(place)
    except OSError as error:
        raise _describe_write_error(error) from error


def _describe_write_error(error: OSError) -> RunRefused:
    why = error.strerror or "the folder is not a plain one of this user"
    return RunRefused("cannot_write", f"The file could not be written beside the original: {why}. Nothing was changed.")


def look_at(row: ResumedFile) -> FileState | None:
    """How the file is now; None for a download, and where its folder is not watched or not readable any more."""
    place = find_place(row.path, settings.FOLLOW_ROOTS) if row.path and settings.LOCAL_MODE else None
    if place is None:
        return None
    try:
        return find_state(place, digest=row.digest, size_bytes=row.size_bytes)
    except OSError:
        return None


def undo_resumed_file(row: ResumedFile, *, by: User | None, now: datetime) -> FileState:
    """Removes the file, and the session that was read from it, if nothing was added to either since. Raises RunRefused,
    with what was found, where it has to stay."""
    place = find_place(row.path, settings.FOLLOW_ROOTS) if row.path and settings.LOCAL_MODE else None
    if place is None:
        raise RunRefused("not_here", "This transcript is not in a folder that is followed on this machine.")
    try:
        drop_draft(place)
        _require_unused(row, place)
        state = remove_unchanged(place, digest=row.digest, size_bytes=row.size_bytes)
    except OSError as error:
        raise RunRefused(
            "cannot_remove", "Something else stands where the transcript was written. It was left as it is."
        ) from error
    if state is FileState.CONTINUED:
        raise RunRefused("continued", _CONTINUED)
    if state is FileState.CHANGED:
        raise RunRefused("changed", "The transcript is not as it was written. It was left as it is.")
    ResumedFile.objects.filter(pk=row.pk, removed_at=None).update(removed_at=now)
    delete_resumed(row, by=by, now=now)
    return state


def _require_unused(row: ResumedFile, place: WatchedPlace) -> None:
    """Raise RunRefused where the file is there and its session was added to, by hooks or telemetry too."""
    session = AgentSession.objects.filter(team=row.team, external_id=row.external_id).first()
    if session is None or not is_added_to(session, row):
        return
    if find_state(place, digest=row.digest, size_bytes=row.size_bytes) is FileState.MISSING:
        return
    if session.runs.exists():
        raise RunRefused("continued", "The new session was compacted itself. The transcript was left as it is.")
    raise RunRefused("continued", _CONTINUED)


def forget_missing(*, now: datetime) -> int:
    """Marks rows whose file is not there, and clears away what killed processes left of theirs."""
    if not settings.LOCAL_MODE:
        return 0
    marked = 0
    for row in ResumedFile.objects.filter(~Q(path=""), removed_at=None, written_at__lt=now - SETTLED_AFTER):
        place = find_place(row.path, settings.FOLLOW_ROOTS)
        if place is None:
            continue
        try:
            drop_draft(place)
            is_missing = find_state(place, digest=row.digest, size_bytes=row.size_bytes) is FileState.MISSING
        except OSError:
            continue  # not ours to judge
        if is_missing:
            marked += ResumedFile.objects.filter(pk=row.pk, removed_at=None).update(removed_at=now)
    return marked


def _describe(run: CompactionRun, data: bytes, revision_number: int, by: User | None) -> dict[str, object]:
    return {
        "run": run,
        "origin": run.session,
        "revision_number": revision_number,
        "digest": sha256(data).hexdigest(),
        "size_bytes": len(data),
        "written_by": by,
    }
