"""API keys. A key cannot make or revoke keys: that needs a signed-in person."""

from datetime import timedelta

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Router, Status

from dashboard import access
from dashboard.access import Act
from dashboard.accounts import keys
from dashboard.api.request import ApiRequest, acting_user
from dashboard.api.schemas import PERSON_ONLY, KeyIn, KeyLimits, KeyOut, NewKeyOut, Problem
from dashboard.models import ApiKey

router = Router(tags=["keys"])


@router.get(
    "/teams/{slug}/keys",
    summary="List API keys",
    response={200: list[KeyOut], 403: Problem, 404: Problem},
    openapi_extra=PERSON_ONLY,
)
def list_keys(request: ApiRequest, slug: str) -> QuerySet[ApiKey]:
    """Admins see the team's keys, members their own."""
    return access.keys(request.auth, slug)


@router.post(
    "/teams/{slug}/keys",
    summary="Create API key",
    response={201: NewKeyOut, 403: Problem, 404: Problem, 409: Problem},
    openapi_extra=PERSON_ONLY,
)
def create_key(request: ApiRequest, slug: str, body: KeyIn) -> Status[dict[str, object]]:
    """The response contains the key, which is shown only once."""
    team = access.require_team(request.auth, slug, Act.KEEP_KEYS)
    if not set(body.scopes) <= set(access.scopes_to_give(request.auth, team)):
        raise PermissionDenied("A key cannot have permissions that you do not have.")
    if body.is_collector:
        access.require_team(request.auth, slug, Act.MANAGE)
    user = acting_user(request)
    expires_at = timezone.now() + timedelta(days=body.expires_days) if body.expires_days else None
    key, text = keys.create_key(
        team,
        user,
        name=body.name,
        scopes=body.scopes,
        expires_at=expires_at,
        is_collector=body.is_collector,
        by=user,
    )
    return Status(201, {"key": text, "details": key})


@router.put(
    "/teams/{slug}/keys/{int:key_id}/limits",
    summary="Update API key limits",
    response={200: KeyOut, 403: Problem, 404: Problem},
    openapi_extra=PERSON_ONLY,
)
def limit_key(request: ApiRequest, slug: str, key_id: int, body: KeyLimits) -> ApiKey:
    """Rate limits of the key. Requests over the limit get HTTP 429 with Retry-After."""
    access.require_team(request.auth, slug, Act.MANAGE)
    key = get_object_or_404(access.keys(request.auth, slug), pk=key_id)
    keys.limit_key(key, **body.model_dump(), by=acting_user(request))
    key.refresh_from_db()
    return key


@router.delete(
    "/teams/{slug}/keys/{int:key_id}",
    summary="Revoke API key",
    response={204: None, 403: Problem, 404: Problem},
    openapi_extra=PERSON_ONLY,
)
def revoke_key(request: ApiRequest, slug: str, key_id: int) -> Status[None]:
    """The key is rejected from its next request on. Revoking it again has no effect."""
    key = get_object_or_404(access.keys(request.auth, slug), pk=key_id)
    keys.revoke_key(key, by=acting_user(request), now=timezone.now())
    return Status(204, None)
