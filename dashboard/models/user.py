"""A person who signs in. Rights live in Membership alone: there is no superuser who goes around it."""

import unicodedata
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone

_FILLERS = dict.fromkeys(map(ord, "\u115f\u1160\u3164\uffa0"))  # letters of Hangul that are not drawn


def normalize_name(name: str) -> str:
    """Return the form in which names are compared: two names that people read as one have the same.

    Case, full-width letters, ligatures, spaces around it and invisible letters make no difference.
    """
    folded = unicodedata.normalize("NFKC", name).casefold().translate(_FILLERS)
    return unicodedata.normalize("NFKC", folded).strip()


class UserManager(BaseUserManager["User"]):
    def create_user(self, username: str, password: str | None = None) -> "User":
        """Without a password the account opens by a sign-in link only."""
        user = User(username=User.normalize_username(username))
        user.set_password(password)
        user.save()
        return user

    def find_by_name(self, name: str) -> "User | None":
        """Return the account of this name in any spelling; of several, the one whose spelling is the closest.

        There are several only where earlier versions made them. All but the oldest have a space in their key.
        """
        name, key = User.normalize_username(name).strip(), normalize_name(name)
        candidates = self.filter(models.Q(name_key=key) | models.Q(name_key__startswith=f"{key} "))
        return min(
            candidates,
            key=lambda user: (user.username != name, user.username.lower() != name.lower(), user.name_key != key),
            default=None,
        )

    def get_by_natural_key(self, username: str | None) -> "User":
        user = self.find_by_name(username or "")
        if user is None:
            raise User.DoesNotExist
        return user


class User(AbstractBaseUser):
    username = models.CharField("name", max_length=150, unique=True, validators=[UnicodeUsernameValidator()])
    # `normalize_name` of it, which may have twice as many letters: unique, and what sign-in looks for.
    name_key = models.CharField(max_length=330, unique=True, editable=False)
    is_active = models.BooleanField(default=True)
    is_demo = models.BooleanField(default=False)  # invented; goes with the demo
    created_at = models.DateTimeField(default=timezone.now)
    # The columns of the sessions list that this person wants to see; empty: the default.
    session_columns = models.JSONField(default=list, blank=True)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "username"

    def __str__(self) -> str:
        return self.username

    def clean(self) -> None:
        super().clean()
        if self._state.adding and User.objects.find_by_name(self.username) is not None:
            raise ValidationError({"username": "This name is already taken. Choose another one."})

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.name_key = self.name_key or normalize_name(self.username)
        super().save(*args, **kwargs)
