"""`plimsoll connect claude-code`: hooks, status line and telemetry in the client's settings, and out of them again."""

import json
import socket
from pathlib import Path
from typing import Any

from django.conf import settings as installation
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from dashboard.accounts.keys import create_key
from dashboard.accounts.local import ensure_local_owner
from dashboard.client.client_folder import CONNECTION, find_folder, make_folder, name_file, read_json, write_file
from dashboard.client.client_settings import Settings, UnusableSettings, merge_settings, undo_settings
from dashboard.client.client_settings_file import (
    find_client_home,
    has_receipts,
    keep_receipt,
    read_receipt,
    read_settings,
    replace_settings,
    show_difference,
    spell_settings,
)
from dashboard.client.client_wishes import is_of_a_project, is_safe_address, list_wishes
from dashboard.management.plain_command import PlainCommand
from dashboard.models import Membership, Scope

NO_KEY = "YOUR_KEY"
HOW_TO_GET_A_KEY = (
    "Specify an API key with --key. Create one with the scope ingest on your team's API keys page, "
    "or on the server: plimsoll createkey --name laptop --scope ingest"
)


class Command(PlainCommand):
    help = (
        "Prints the Claude Code settings that send hooks, status line and telemetry to Plimsoll. With --write they are "
        "merged into your settings file, after a backup; with --undo they are removed again."
    )

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        """Django has a --settings of its own, which no command of `plimsoll` shows."""
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **options)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client", choices=["claude-code"])
        acts = parser.add_mutually_exclusive_group()
        acts.add_argument("--write", action="store_true", help="merge into the settings file")
        acts.add_argument("--undo", action="store_true", help="remove what --write added, and nothing else")
        parser.add_argument("--url", help="server URL (default: this installation)")
        parser.add_argument("--key", help="API key with the scope ingest (on your own machine one is created)")
        parser.add_argument(
            "--settings", type=Path, metavar="PATH", help="settings file (default: settings.json of your own client)"
        )
        parser.add_argument(
            "--replace-statusline", action="store_true", help="replace a status line that is already configured"
        )

    def handle(self, *args: object, write: bool, undo: bool, **options: object) -> None:
        told = options["settings"]
        path = told if isinstance(told, Path) else find_client_home() / "settings.json"
        if is_of_a_project(path, find_client_home()):
            raise CommandError(f"{path} belongs to a project. URL and key can only be written to your own settings.")
        try:
            if undo:
                self._undo(path)
                return
            url = str(options["url"] or installation.PUBLIC_URL).rstrip("/")
            if not is_safe_address(url):
                raise CommandError(f"--url {url}: expected https, or plain http on this machine only.")
            key = _find_key(url, str(options["key"] or ""), may_make=write)
            self._connect(path, url, key, write=write, replaces=bool(options["replace_statusline"]))
        except UnusableSettings as error:
            raise CommandError(f"{error} Nothing was changed.") from None

    def _connect(self, path: Path, url: str, key: str, *, write: bool, replaces: bool) -> None:
        folder = find_folder()
        if not write:
            merged = merge_settings({}, list_wishes(url, key or NO_KEY), {}, replaces_status_line=True)
            self.say(spell_settings(merged.settings).rstrip())
            self.stderr.write(f"To merge this into {path}, add --write.", self.style.NOTICE)
            return
        if not key:
            raise CommandError(HOW_TO_GET_A_KEY)
        before, text = read_settings(path)
        receipt = read_receipt(folder, path)
        merged = merge_settings(before, list_wishes(url, key), receipt, replaces_status_line=replaces)
        make_folder(folder)
        write_file(name_file(folder, CONNECTION), json.dumps({"url": url, "key": key}).encode())
        made_file = receipt.get("made_file", not text)
        keep_receipt(folder, path, merged.receipt | {"made_file": made_file})
        self._replace(path, text, before, merged.settings, secret=key)
        for name in merged.left_alone:
            more = (
                " Use --replace-statusline to replace it."
                if name == "statusLine"
                else " Telemetry is sent there, not to Plimsoll."
            )
            self.stderr.write(f"{name} is already set to another value and was not changed.{more}", self.style.WARNING)

    def _undo(self, path: Path) -> None:
        folder = find_folder()
        receipt = read_receipt(folder, path)
        if not receipt:
            self.say(f"{path} has no Plimsoll entries to remove.")
            return
        before, text = read_settings(path)
        key = str(read_json(name_file(folder, CONNECTION)).get("key", ""))
        after = undo_settings(before, receipt)
        self._replace(path, text, before, after, secret=key)
        if receipt.get("made_file") and not after:
            path.unlink(missing_ok=True)
        keep_receipt(folder, path, None)
        if not has_receipts(folder):
            Path(name_file(folder, CONNECTION)).unlink(missing_ok=True)

    def _replace(self, path: Path, text: str, before: Settings, after: Settings, *, secret: str) -> None:
        if after == before and list(after) == list(before):
            self.say(f"{path} is already up to date.")
            return
        fresh = spell_settings(after)
        self.say(show_difference(text, fresh, path, secret=secret))
        backup = replace_settings(path, text, fresh, now=timezone.now())
        self.say(f"Written: {path}" + (f" (backup: {backup})" if backup else ""))


def _find_key(url: str, told: str, *, may_make: bool) -> str:
    """The key that was typed, the one this machine sends with already, or a new one of this machine's own server."""
    if told:
        return told
    kept = read_json(name_file(find_folder(), CONNECTION))
    if kept.get("url") == url and isinstance(kept.get("key"), str):
        return str(kept["key"])
    if not may_make or not installation.LOCAL_MODE or url != installation.PUBLIC_URL:
        return ""
    owner = ensure_local_owner()
    team = Membership.objects.select_related("team").get(user=owner, team__is_local=True).team
    name = f"Claude Code on {socket.gethostname()}"[:80]
    return create_key(team, owner, name=name, scopes=[Scope.INGEST], expires_at=None, by=owner)[1]
