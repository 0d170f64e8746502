"""What a team decided: lines, storage, what the proxy adds, prices. Each change is a new row, the newest in force."""

from django.db import models
from django.utils import timezone

from dashboard.models.team import Team
from dashboard.models.user import User


class TeamPolicy(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="policies")
    version = models.PositiveIntegerField()  # 1, 2, 3 … within the team
    thresholds = models.JSONField(default=dict)  # as compaction.context.policy.Policy.from_team_values takes them
    stores_content = models.BooleanField(default=False)
    own_patterns = models.JSONField(default=dict)  # name -> pattern: secrets of the team's own making
    disabled_rules = models.JSONField(default=list)  # names of redaction rules that are switched off
    redaction_version = models.PositiveIntegerField(default=0)  # the version that last changed patterns or rules
    content_days = models.PositiveIntegerField(null=True, blank=True)  # None: kept until somebody deletes it
    metrics_days = models.PositiveIntegerField(null=True, blank=True)
    # As dashboard.policies.proxy_additions writes them; empty: the proxy adds nothing.
    proxy_additions = models.JSONField(default=dict)
    # base name of a model -> [input, output, 5m write, 1h write, read] in dollars per million tokens; before every list
    own_prices = models.JSONField(default=dict)
    price_version = models.PositiveIntegerField(default=0)  # the version that last changed them
    changed_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    changed_by_name = models.CharField(max_length=150, blank=True)
    note = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            # Two people saving at once: the second is told, nothing is overwritten. Serves "the newest of a team".
            models.UniqueConstraint(fields=["team", "version"], name="policy_version_once_per_team"),
        ]

    def __str__(self) -> str:
        return f"policy {self.version} of {self.team}"
