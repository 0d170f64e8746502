"""Makes the accounts and keys of the storm and prints them as JSON: a team, its owner Ann and the member Mallory."""

import json
import sys

import django

django.setup()

from dashboard.accounts.keys import create_key  # noqa: E402
from dashboard.models import Membership, Role, Scope, Team, TeamPolicy, User  # noqa: E402

SENDING = (Scope.INGEST, Scope.PROXY, Scope.READ, Scope.COMPACT)


def main() -> None:
    team = Team.objects.create(name="Harbour", slug="harbour")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    keys = {}
    for name, role, scopes in (("ann", Role.OWNER, SENDING), ("mallory", Role.MEMBER, (Scope.INGEST,))):
        user = User.objects.create_user(name, f"{name}-password")
        Membership.objects.create(team=team, user=user, role=role)
        key, text = create_key(team, user, name=name, scopes=scopes, expires_at=None, by=user)
        key.requests_per_minute = key.mib_per_minute = 0
        key.save()
        keys[name] = text
    sys.stdout.write(json.dumps(keys))


if __name__ == "__main__":
    main()
