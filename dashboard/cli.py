"""The console script `plimsoll`: one list of commands, errors as one sentence. Imports Django only when needed."""

import difflib
import os
import sys
from typing import NoReturn

from dashboard import console
from dashboard.environment import BadSetting
from dashboard.loading import loading
from dashboard.version import VERSION

COMMANDS = {
    "up": "start Plimsoll and keep it running",
    "import": "import transcripts of coding agents: files, folders or a .claude home",
    "demo": "load demo sessions, or remove them with --remove",
    "compact": "compact a stored session, or preview the result with --preview",
    "signinlink": "print a one-time sign-in link",
    "createowner": "create an account with a password and a team",
    "resetpassword": "set an account's password",
    "createkey": "create an API key",
    "backup": "back up the database to a file, also while Plimsoll runs",
    "restore": "restore the database from a backup file",
    "web": "run only a web server process",
    "worker": "run only a worker process",
    "sweeper": "run only a sweeper process",
    "follow": "run only the follower, which imports transcripts as they grow",
    "recorder": "run only the recorder of proxied calls",
    "migrate": "prepare the database for this version",
    "check": "check the configuration (--deploy: stricter)",
    "connect": "configure Claude Code to send hooks, status line and telemetry to Plimsoll",
    "hook": "forward a Claude Code hook event (reads stdin)",
    "statusline": "print a context gauge for the Claude Code status line (reads stdin)",
    "watch": "send this machine's transcripts to a Plimsoll server as they grow",
    "version": "print the version",
}

USAGE = """\
usage: plimsoll COMMAND [OPTIONS]

Shows how full each coding agent's context window is, why its prompt cache broke, and what that cost.

commands:
{commands}

Run `plimsoll COMMAND --help` for details. Common environment variables:
  PLIMSOLL_PORT        port to listen on (8000)
  PLIMSOLL_DATA        folder for the database and the secret key
  PLIMSOLL_PUBLIC_URL  public URL, such as https://plimsoll.example
  DATABASE_URL         postgresql://user:password@host:port/database instead of SQLite
"""


def main() -> NoReturn:
    """The entry point; the exit code is 2 for what was typed or set wrongly, 1 for what failed."""
    arguments = sys.argv[1:]
    name = arguments[0] if arguments else "--help"
    if name in ("-h", "--help", "help"):
        lines = "\n".join(f"  {command:<14} {summary}" for command, summary in COMMANDS.items())
        sys.stdout.write(USAGE.format(commands=lines))
        sys.exit(0 if arguments else 2)
    if name in ("version", "--version", "-V"):
        sys.stdout.write(f"plimsoll {VERSION}\n")
        sys.exit(0)
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        fail(f"unknown command {name!r}." + (f" Did you mean {near[0]}?" if near else " See: plimsoll --help"), 2)
    if name in console.PROGRAMS:
        console.main()
    run(name, arguments[1:])


def run(name: str, arguments: list[str]) -> NoReturn:
    os.umask(0o077)  # the database, its log and every other file of ours is for this user alone
    # A quarter of a second that `plimsoll --help` and a mistyped command need not wait for.
    with loading():
        from dashboard.management.run_command import CommandFailed, load_command, run_command  # noqa: PLC0415

    try:
        with loading():
            command = load_command(name)
        run_command(command, name, arguments)
    except BadSetting as error:
        fail(str(error), 2)
    except CommandFailed as error:
        fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)


def fail(sentence: str, exit_code: int) -> NoReturn:
    sys.stderr.write(f"plimsoll: {sentence}\n")
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
