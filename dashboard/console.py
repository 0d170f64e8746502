"""Where the console script begins: programs that a client waits for start at once, every other command through cli."""

import sys
from typing import NoReturn

# Run by coding agents, again and again: each import is felt. And what runs on machines without a database.
PROGRAMS = ("hook", "statusline", "watch")


def main() -> NoReturn:
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name == "hook":
        from dashboard.client import hook_forwarder  # noqa: PLC0415

        sys.exit(hook_forwarder.main(sys.argv[2:]))
    if name == "statusline":
        from dashboard.client import statusline  # noqa: PLC0415

        sys.exit(statusline.main(sys.argv[2:]))
    if name == "watch":
        from dashboard.push import watch_program  # noqa: PLC0415

        sys.exit(watch_program.main(sys.argv[2:]))
    from dashboard import cli  # noqa: PLC0415

    cli.main()


if __name__ == "__main__":
    main()
