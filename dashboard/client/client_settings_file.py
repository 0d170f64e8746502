"""Claude Code's settings file and the receipts of what was put into it: read, compared, replaced whole."""

import difflib
import json
import os
import tempfile
from datetime import datetime
from pathlib import Path

from dashboard.client.client_folder import make_folder, name_file, read_json, write_file
from dashboard.client.client_settings import Receipt, Settings, UnusableSettings

RECEIPTS = "connected.json"


def find_client_home() -> Path:
    told = os.environ.get("CLAUDE_CONFIG_DIR", "").strip()
    return Path(told).expanduser() if told else Path.home() / ".claude"


def read_settings(path: Path) -> tuple[Settings, str]:
    """The settings and their text; both empty where there is no file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}, ""
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableSettings(f"{path} cannot be read: {error}") from error
    try:
        settings = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise UnusableSettings(f"{path} is not JSON: {error}") from error
    if not isinstance(settings, dict):
        raise UnusableSettings(f"{path} does not contain a JSON object.")
    return settings, text


def spell_settings(settings: Settings) -> str:
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def show_difference(before: str, after: str, path: Path, *, secret: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), f"{path} (new)", lineterm="")
    shown = "\n".join(lines)
    return shown.replace(secret, "plk_…") if secret else shown


def replace_settings(path: Path, before: str, after: str, *, now: datetime) -> Path | None:
    """Whole or not at all, for its owner alone; where the backup is. Raises when somebody else wrote it meanwhile."""
    real = path.resolve()  # a link stays a link
    real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    backup = None
    if before:
        backup = real.with_name(f"{real.name}.backup-{now:%Y%m%d-%H%M%S-%f}")
        _write_new(backup, before)
    descriptor, fresh = tempfile.mkstemp(prefix=f".{real.name}.", dir=real.parent)  # 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        if read_settings(path)[1] != before:
            raise UnusableSettings(f"{path} was changed by another program just now. Nothing was written. Try again.")
        Path(fresh).replace(real)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise
    return backup


def _write_new(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def read_receipt(folder: str, path: Path) -> Receipt:
    found = read_json(name_file(folder, RECEIPTS)).get(str(path.resolve()))
    return found if isinstance(found, dict) else {}


def has_receipts(folder: str) -> bool:
    """Whether any settings file still has something of ours."""
    return any(Path(path).is_file() for path in read_json(name_file(folder, RECEIPTS)))


def keep_receipt(folder: str, path: Path, receipt: Receipt | None) -> None:
    """None: forget it."""
    receipts = read_json(name_file(folder, RECEIPTS))
    receipts.pop(str(path.resolve()), None)
    if receipt is not None:
        receipts[str(path.resolve())] = receipt
    make_folder(folder)
    write_file(name_file(folder, RECEIPTS), spell_settings(receipts).encode())
