"""The callback of `POST /api/v1/compact`: kept with the run, told when it ends, however it ends."""

from dataclasses import dataclass

from django.db import transaction

from dashboard.accounts import tokens
from dashboard.hooks.notices import post_callback
from dashboard.hooks.targets import read_target
from dashboard.hooks.webhooks import seal_secret
from dashboard.models import CompactionRun, RunCallback, RunState


@dataclass(frozen=True)
class CallbackWish:
    url: str
    secret: str


def read_callback(url: str, secret: str) -> CallbackWish | None:
    """None where no address is given; a secret is made where none is. Raises TargetRefused."""
    if not url:
        return None
    read_target(url)
    return CallbackWish(url, secret or tokens.make_token(tokens.WEBHOOK_SECRET))


@transaction.atomic
def attach_callback(run: CompactionRun, wish: CallbackWish) -> None:
    """A worker may have been quicker: under the lock of the run's row either it sees the callback, or we its end."""
    locked = CompactionRun.objects.select_for_update(of=("self",)).select_related("team").get(pk=run.pk)
    callback = RunCallback.objects.create(run=locked, url=wish.url, sealed_secret=seal_secret(run.team, wish.secret))
    if not RunState(locked.state).is_open:
        post_callback(locked, callback)
