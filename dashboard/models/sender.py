"""Who sends telemetry: an account, or a collector, which sends for many people."""

from dataclasses import dataclass

from django.db import models

from dashboard.models.user import User

SERVER_SOURCES = ("import", "follow")


class Collector(models.TextChoices):
    """What created a session that no account created."""

    NONE = ""
    SERVER = "server"  # its import or follower, which the operator runs
    KEY = "key"  # one that an admin marked as a collector


@dataclass(frozen=True, slots=True)
class Sender:
    account_pk: int | None
    collector: Collector

    def may_continue(self, *, owner_pk: int | None, collector: str) -> bool:
        """Return whether telemetry of this sender may change a session with this owner, created by this collector.

        Many people hold a collector key, so it continues only what collector keys created. The operator's import and
        follower continue whatever a collector created."""
        if self.account_pk is not None:
            return owner_pk == self.account_pk
        if self.collector == Collector.SERVER:
            return collector != Collector.NONE
        return collector == Collector.KEY


def identify_sender(account: User | None, source: str) -> Sender:
    """Return the sender of what arrives from a source (`Origin.source`) with this account, or with none."""
    if account is not None:
        return Sender(account.pk, Collector.NONE)
    return Sender(None, Collector.SERVER if source in SERVER_SOURCES else Collector.KEY)
