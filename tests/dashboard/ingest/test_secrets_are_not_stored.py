"""S8: secrets planted in every part of a transcript, looked for in every value of the database and in the log."""

import json
import logging
from collections.abc import Iterator

import pytest
from django.apps import apps

from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.ingest.segments import expand
from dashboard.models import AgentSession, EntrySegment, PromptShape, TeamPolicy
from tests.builders import make_team
from tests.dashboard.ingest.conversation import Conversation
from tests.dashboard.ingest.planted_secrets import PLANTED

pytestmark = pytest.mark.django_db


def _plant(texts: list[str]) -> Conversation:
    talk = Conversation()
    for number, text in enumerate(texts):
        talk.ask(f"Use {text} please.")
        talk.answer(f"m{number}", written=100, words=f"I use {text} now.")
        talk.result(f"ok\n{text}\n")
        talk.write("user", cwd=f"/tmp/{text}", gitBranch=text, message={"role": "user", "content": "x"})
        talk.note("summary", summary=f"With {text}")
        talk.write("attachment", attachment={"type": "file", "filename": text, "content": text})
        talk.note("api-request-shape", shapeHash=f"h{number}", shape={"system": [text], "tools": [{"name": text}]})
    return talk


def _read_everything() -> Iterator[str]:
    for model in apps.get_models():
        for row in model._default_manager.values():
            for value in row.values():
                yield value.hex() if isinstance(value, bytes | memoryview) else json.dumps(value, default=str)
    packed = [value for row in EntrySegment.objects.values_list("facts", "content") for value in row]
    packed += PromptShape.objects.values_list("content", flat=True)
    for value in packed:
        assert value is not None, "content is stored here"
        yield expand(value).decode("utf-8", "replace")


def test_no_planted_secret_is_in_the_database_or_the_log(caplog: pytest.LogCaptureFixture) -> None:
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    talk = _plant([planted.text for planted in PLANTED])
    with caplog.at_level(logging.DEBUG):
        taken = take_in(Origin(team, None, "api"), Piece(talk.data, "harbour.jsonl", talk.session_id))
    assert sum((taken.redactions or {}).values()) >= len(PLANTED)
    told = "\n".join(_read_everything()) + caplog.text
    assert talk.session_id in told, "the search itself finds what is there"
    left = [planted.form for planted in PLANTED if planted.secret in told]
    assert left == []
    assert AgentSession.objects.get().call_count == len(PLANTED)
