"""`plimsoll migrate`: Django's own, which every other command that prepares the database calls too."""

from django.core.management.commands import migrate


class Command(migrate.Command):
    requires_system_checks = []  # as for every command of ours; they would load every page first
