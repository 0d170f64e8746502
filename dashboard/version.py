"""The version of Plimsoll, here alone: asking the installed packages for it takes longer than `plimsoll --help`."""

VERSION = "0.1.0"
