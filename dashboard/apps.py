"""The Django app of Plimsoll."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from dashboard.ingest.hour_triggers import ensure_hour_triggers
from dashboard.pages.search_index import ensure_search_index, refresh_statistics


class DashboardConfig(AppConfig):
    name = "dashboard"
    verbose_name = "Plimsoll"

    def ready(self) -> None:
        post_migrate.connect(ensure_search_index, sender=self)
        post_migrate.connect(ensure_hour_triggers, sender=self)
        post_migrate.connect(refresh_statistics, sender=self)
