"""Refusal of unknown query parameters: a misspelt filter would otherwise be ignored and give wrong totals."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from ninja import NinjaAPI
from ninja.errors import HttpError

from dashboard.api.request import ApiRequest

Endpoint = Callable[..., Any]


def make_parameter_check(api: NinjaAPI) -> Callable[[Endpoint], Endpoint]:
    """Return a decorator for all endpoints of an API. What is documented is accepted, anything else is a 422.

    Only reads are checked: programs that send telemetry are never refused for a parameter that changes nothing.
    """

    @cache
    def list_documented() -> dict[str, set[str]]:
        return {
            operation["operationId"]: {each["name"] for each in operation["parameters"] if each["in"] == "query"}
            for operations in api.get_openapi_schema()["paths"].values()
            for operation in operations.values()
        }

    def check(endpoint: Endpoint) -> Endpoint:
        operation_id = f"{endpoint.__module__}.{endpoint.__name__}".replace(".", "_")

        @wraps(endpoint)
        def checked(request: ApiRequest, *args: Any, **kwargs: Any) -> Any:
            if request.GET and request.method in ("GET", "HEAD"):
                _refuse_unknown(set(request.GET), list_documented()[operation_id])
            return endpoint(request, *args, **kwargs)

        return checked

    return check


def _refuse_unknown(given: set[str], documented: set[str]) -> None:
    unknown = sorted(given - documented)
    if unknown:
        known = f"Known are {', '.join(sorted(documented))}." if documented else "There are none here."
        raise HttpError(422, f"{unknown[0][:80]}: unknown parameter. {known}")
