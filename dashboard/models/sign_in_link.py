"""One-time links that sign a person in without a password; printed on the terminal, never mailed."""

from django.db import models
from django.utils import timezone

from dashboard.models.user import User


class SignInLink(models.Model):
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sign_in_links")
    digest = models.BinaryField(max_length=32, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"for {self.user} until {self.expires_at:%Y-%m-%d %H:%M}"
