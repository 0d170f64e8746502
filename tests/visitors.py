"""Visitors of pages and endpoints: signed-in people who read, ask and are counted by the queries they cause."""

import html
import json
import re
from typing import Any

from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.builders import make_user


def sign_in(name: str) -> Client:
    client = Client()
    client.force_login(make_user(name), backend="django.contrib.auth.backends.ModelBackend")
    return client


def read(client: Client, url: str, **headers: str) -> str:
    answer = client.get(url, headers=headers)
    assert answer.status_code == 200, (url, answer.status_code)
    return answer.content.decode()


def ask(client: Client, path: str) -> Any:
    return json.loads(read(client, f"/api/v1/{path}"))


def count_queries(client: Client, url: str) -> int:
    read(client, url)  # the session remembers its team with the first visit
    cache.clear()  # some answers are kept for seconds: on a slow machine they may run out in between
    with CaptureQueriesContext(connection) as queries:
        read(client, url)
    return len(queries)


def read_words(client: Client, url: str, **headers: str) -> str:
    """What the answer says, without its markup."""
    response = client.get(url, headers=headers)
    assert response.status_code == 200
    text = re.sub(r"<script.*?</script>|<[^>]*>", " ", response.content.decode(), flags=re.DOTALL)
    return " ".join(html.unescape(text).split())
