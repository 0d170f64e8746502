"""What the API takes and gives, as documented types."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema
from pydantic import BaseModel, ConfigDict, StringConstraints

from dashboard.models import Role, Scope

Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80, pattern=r"^[^\x00-\x1f\x7f]*$")
]


# On operations that need a signed-in person: the reference says so and shows no call with a key.
PERSON_ONLY = {"x-person-only": True}


class Input(BaseModel):
    """A field that is not known is refused: a misspelt one would otherwise do nothing, silently. Not the framework's
    Schema, which reads our objects and checks what came from outside twice for it."""

    model_config = ConfigDict(extra="forbid")


class Problem(Schema):
    """Body of every error response."""

    detail: str


class TeamOut(Schema):
    slug: str
    name: str
    role: Role
    rights: list[str]


class MeOut(Schema):
    name: str
    key: str | None = Field(None, description="Prefix of the API key used; null for a browser.")
    teams: list[TeamOut]


class TeamIn(Input):
    name: Name


class MemberOut(Schema):
    id: int
    name: str = Field(alias="user.username")
    role: Role
    content_grant: bool
    joined_at: datetime = Field(alias="created_at")


class MemberChange(Input):
    """Omitted fields are unchanged."""

    role: Role | None = None
    content_grant: bool | None = None


class KeyOut(Schema):
    id: int
    name: str
    prefix: str
    owner: str = Field(alias="owner.username")
    scopes: list[Scope]
    is_collector: bool = Field(description="Shared key: its sessions have no owner until assigned.")
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    requests_per_minute: int | None = Field(description="Null: the default limit; 0: unlimited.")
    mib_per_minute: int | None = Field(description="Null: the default limit; 0: unlimited.")


class KeyLimits(Input):
    """Null or omitted: the default limit; 0: unlimited."""

    requests_per_minute: int | None = Field(None, ge=0, le=10**7)
    mib_per_minute: int | None = Field(None, ge=0, le=10**6)


class NewKeyOut(Schema):
    key: str = Field(description="The API key. It is not stored and cannot be shown again.")
    details: KeyOut


class KeyIn(Input):
    name: Name
    scopes: list[Scope] = Field(min_length=1, max_length=len(Scope))
    expires_days: int | None = Field(90, ge=1, le=3650, description="Null: the key does not expire.")
    is_collector: bool = Field(
        False, description="Shared key, created by admins: its sessions have no owner until assigned."
    )
