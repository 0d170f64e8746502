"""S1: whatever is sent to an endpoint, with whatever right, no answer is a 5xx. Cases are drawn from the description.

PLIMSOLL_TEST_API_CASES sets how many are drawn for each endpoint (valid ones and invalid ones, half and half).
"""

import json
import os
from dataclasses import dataclass
from typing import Any

import pytest
import requests
import schemathesis
from django.db import connection, transaction
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from ninja.responses import NinjaJSONEncoder
from schemathesis import GenerationMode

from dashboard.api import api
from dashboard.models import Scope, User
from tests.builders import make_key, make_team
from tests.dashboard.expectations import KEY_SCOPES
from tests.dashboard.furniture import furnish

pytestmark = pytest.mark.django_db
SITE = "http://testserver"
CASES = int(os.environ.get("PLIMSOLL_TEST_API_CASES") or (12 if connection.vendor == "postgresql" else 42))
DOCUMENT = json.loads(json.dumps(api.get_openapi_schema(), cls=NinjaJSONEncoder))
schemathesis.serializer.alias("application/x-ndjson", "application/octet-stream")
_FOUND: list[Any] = list(schemathesis.openapi.from_dict(DOCUMENT).get_all_operations())
OPERATIONS = {found.ok().label: found.ok() for found in _FOUND}
OWNER = "owner, signed in"
SETTINGS = settings(
    max_examples=max(CASES // 2, 1), database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)


@dataclass(frozen=True)
class Place:
    clients: dict[str, Client]
    furniture: dict[str, object]

    def send(self, prepared: requests.PreparedRequest, who: str) -> int:
        """The status; what the request did is undone, so that each one finds the same team."""
        path = str(prepared.url).removeprefix(SITE)
        body = prepared.body.encode() if isinstance(prepared.body, str) else prepared.body or b""
        kind = str(prepared.headers.get("Content-Type", ""))
        with transaction.atomic():
            answer = self.clients[who].generic(str(prepared.method), path, body, kind)
            transaction.set_rollback(True)
        return int(answer.status_code)


@pytest.fixture
def place() -> Place:
    team = make_team("Harbour", owner="olga")
    owner = User.objects.get(username="olga")
    scopes = {**KEY_SCOPES, "key of every scope": tuple(Scope)}
    keys = {name: make_key(team, owner, *map(Scope, wanted))[1] for name, wanted in scopes.items()}
    clients = {name: Client(headers={"authorization": f"Bearer {text}"}) for name, text in keys.items()}
    clients[OWNER] = Client()
    clients[OWNER].force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    return Place(clients, furnish(team))


def test_every_endpoint_is_attacked() -> None:
    described = {f"{method.upper()} {path}" for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert set(OPERATIONS) == described
    assert len(OPERATIONS) * CASES >= 2_000 or "PLIMSOLL_TEST_API_CASES" in os.environ or connection.vendor != "sqlite"


@pytest.mark.parametrize("label", OPERATIONS)
def test_no_case_is_answered_with_a_5xx(place: Place, label: str) -> None:
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        attack_endpoint(place, label, mode)


def attack_endpoint(place: Place, label: str, mode: GenerationMode) -> None:
    @SETTINGS
    @given(case=OPERATIONS[label].as_strategy(generation_mode=mode), draws=st.data())
    def attack(case: Any, draws: st.DataObject) -> None:
        for name in case.path_parameters or ():
            if name in place.furniture and draws.draw(st.integers(0, 3)):  # most lead somewhere
                case.path_parameters[name] = place.furniture[name]
        who = draws.draw(st.sampled_from(sorted(place.clients)))
        prepared = requests.Request(**case.as_transport_kwargs(base_url=SITE)).prepare()
        assert place.send(prepared, who) < 500, (who, prepared.url, prepared.body)

    attack()
