"""Commands of this very installation, as any terminal of this machine takes them: the program and what it must be told.

A new terminal knows neither the folder of the program nor the variables that this server was started with.
"""

import shlex

from django.conf import settings

from dashboard.client.client_wishes import find_program
from dashboard.environment import read_text

ADDRESS_VARIABLES = ("PLIMSOLL_HOST", "PLIMSOLL_PORT", "PLIMSOLL_PUBLIC_URL")
SECRET_VARIABLES = ("DATABASE_URL", "PLIMSOLL_SECRET_KEY")  # no page shows their values


def name_program(*, is_local: bool) -> str:
    """`make run` installs into its own folder, where no terminal looks by itself. Elsewhere by its name."""
    return shlex.join(find_program()) if is_local else "plimsoll"


def spell_command(*words: str, is_local: bool, with_address: bool = False) -> str:
    """`with_address`: for what prints an address of this server."""
    told: dict[str, str] = {}
    if is_local and read_text("PLIMSOLL_DATA"):
        told["PLIMSOLL_DATA"] = str(settings.DATA)
    if is_local and with_address:
        told |= {name: read_text(name) for name in ADDRESS_VARIABLES if read_text(name)}
    given = (f"{name}={shlex.quote(value)}" for name, value in told.items())
    return " ".join((*given, name_program(is_local=is_local), *words))


def list_secret_variables() -> list[str]:
    """Those this server was started with: a command needs the same."""
    return [name for name in SECRET_VARIABLES if read_text(name)]
