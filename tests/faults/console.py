"""A process that posts and cancels jobs as the web process does. A test tells it what to do, one JSON line each."""

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import django

django.setup()

from django.db import connections  # noqa: E402
from django.utils import timezone  # noqa: E402

from dashboard.jobs.control import cancel_job  # noqa: E402
from dashboard.jobs.post import post_job  # noqa: E402
from dashboard.jobs.wake import wake_workers  # noqa: E402
from dashboard.models import Job  # noqa: E402


def post(kind: str, keys: list[str], payload: dict[str, str | float], posters: int) -> int:
    """Every poster posts every key, all at the same time; how many different jobs that gave."""

    def post_all(_poster: int) -> set[int]:
        try:
            return {post_job(kind, key=key, payload=payload).pk for key in keys}
        finally:
            connections.close_all()

    with ThreadPoolExecutor(posters) as pool:
        return len(set.union(*pool.map(post_all, range(posters))))


def cancel(key: str) -> bool:
    return cancel_job(Job.objects.get(key=key), now=timezone.now())


def wake() -> bool:
    return wake_workers(0)


ACTS: dict[str, Callable[..., int]] = {"post": post, "cancel": cancel, "wake": wake}


def main() -> None:
    for line in sys.stdin:
        act, options = json.loads(line)
        sys.stdout.write(json.dumps(ACTS[act](**options)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
