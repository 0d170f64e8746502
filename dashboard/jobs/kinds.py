"""Which kinds of work there are. Only names and dotted paths: a web process never imports what a worker runs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from dashboard.jobs.run import JobRun

Work = Callable[["JobRun"], None]


@dataclass(frozen=True)
class Kind:
    name: str
    path: str  # of a Work function
    label: str  # for people


def known_kinds() -> dict[str, Kind]:
    return {name: Kind(name, path, label) for name, (path, label) in settings.JOB_KINDS.items()}


def label_of(kind: str) -> str:
    """A kind this version does not know keeps its name."""
    known = settings.JOB_KINDS.get(kind)
    return str(known[1]) if known else kind


@cache
def load_work(path: str) -> Work:
    work: Work = import_string(path)
    return work
