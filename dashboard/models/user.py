"""A person who signs in. Rights live in Membership alone: there is no superuser who goes around it."""

from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone


class UserManager(BaseUserManager["User"]):
    def create_user(self, username: str, password: str | None = None) -> "User":
        """Without a password the account opens by a sign-in link only."""
        user = User(username=User.normalize_username(username))
        user.set_password(password)
        user.save()
        return user

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(username__iexact=username)


class User(AbstractBaseUser):
    username = models.CharField("name", max_length=150, unique=True, validators=[UnicodeUsernameValidator()])
    is_active = models.BooleanField(default=True)
    is_demo = models.BooleanField(default=False)  # invented; goes with the demo
    created_at = models.DateTimeField(default=timezone.now)
    # The columns of the sessions list that this person wants to see; empty: all of them.
    session_columns = models.JSONField(default=list, blank=True)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "username"

    class Meta:
        constraints = [
            # Two people who differ only in case would read as one; also serves the sign-in lookup.
            models.UniqueConstraint(
                Lower("username"),
                name="user_name_unique_any_case",
                violation_error_message="Somebody here has this name already.",
            ),
        ]

    def __str__(self) -> str:
        return self.username
