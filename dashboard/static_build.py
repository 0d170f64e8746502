"""Collects, hashes and compresses the static files into STATIC_ROOT, when something in them changed."""

import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.files.storage import Storage
from servestatic.compress import Compressor
from servestatic.storage import CompressedManifestStaticFilesStorage

IGNORED = ["CVS", ".*", "*~"]  # what collectstatic ignores


class BuiltStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # servestatic ships no types
    """Keeps the hashed names alone and leaves source maps uncompressed: a first start takes a third of the time.

    With brotli, where it happens to be installed, plotly.js alone would take ten seconds more.
    """

    keep_only_hashed_files = True

    def create_compressor(self, **kwargs: Any) -> Compressor:
        extensions = [*Compressor.SKIP_COMPRESS_EXTENSIONS, "map"]
        return Compressor(**{**kwargs, "extensions": extensions, "use_brotli": False})


def build_static_files() -> bool:
    """False when what is there is current. Killed anywhere in the middle, the next start builds again."""
    root: Path = settings.STATIC_ROOT
    with root.with_name(f"{root.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several `plimsoll web` may start at once: the first builds
        return _build_unless_current(root)


def _build_unless_current(root: Path) -> bool:
    stamp = root.with_name(f"{root.name}.digest")
    digest = _inputs_digest()
    if root.is_dir() and stamp.is_file() and stamp.read_text() == digest:
        return False
    for leftover in root.parent.glob(f"{root.name}.build-*"):
        shutil.rmtree(leftover)
    fresh = Path(tempfile.mkdtemp(prefix=f"{root.name}.build-", dir=root.parent))
    _collect_into(fresh / "new")
    # Without the stamp the folder counts as unbuilt: from here to its writing a kill costs one more build, no more.
    stamp.unlink(missing_ok=True)
    if root.exists():
        root.rename(fresh / "old")
    (fresh / "new").rename(root)
    stamp.write_text(digest)
    shutil.rmtree(fresh)
    return True


def _found_files() -> Iterator[tuple[str, str, Storage]]:
    """(name below /static/, path inside its storage, storage); of two with one name the first finder's wins."""
    seen: set[str] = set()
    for finder in get_finders():
        for path, storage in finder.list(IGNORED):
            name = str(Path(getattr(storage, "prefix", None) or "") / path)
            if name not in seen:
                seen.add(name)
                yield name, path, storage


def _inputs_digest() -> str:
    digest = hashlib.sha256(f"{settings.VERSION}\n{Path(__file__).stat().st_mtime_ns}\n".encode())
    for name, path, storage in sorted(_found_files(), key=lambda found: found[0]):
        status = Path(storage.path(path)).stat()
        digest.update(f"{name}\t{status.st_size}\t{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _collect_into(folder: Path) -> None:
    """What collectstatic does, but into a folder of our choice: that command knows STATIC_ROOT alone."""
    target = BuiltStorage(location=folder, base_url=settings.STATIC_URL)
    found: dict[str, tuple[Storage, str]] = {}
    for name, path, storage in _found_files():
        with storage.open(path) as source:
            target.save(name, source)
        found[name] = (storage, path)
    for _name, _hashed_name, processed in target.post_process(found):
        if isinstance(processed, Exception):
            raise processed
