"""The Django app of Plimsoll."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.dispatch import Signal
from django.utils.module_loading import import_string

from dashboard.ingest.hour_triggers import ensure_hour_triggers
from dashboard.live.wakes import say_changed
from dashboard.pages.search_index import ensure_search_index, refresh_statistics


class DashboardConfig(AppConfig):
    name = "dashboard"
    verbose_name = "Plimsoll"

    def ready(self) -> None:
        post_migrate.connect(ensure_search_index, sender=self)
        post_migrate.connect(ensure_hour_triggers, sender=self)
        post_migrate.connect(refresh_statistics, sender=self)
        # Models are not loaded before this moment.
        signal: Signal = import_string("dashboard.models.sessions_changed")
        signal.connect(say_changed)
