"""The official JavaScript exporters as clients, against the running application. `make test` installs them."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from dashboard.models import AgentSession, ApiCall, Scope, User
from tests.builders import make_key, make_team

FOLDER = Path(__file__).parent / "javascript"
NODE = shutil.which("node")
is_installed = NODE is not None and (FOLDER / "node_modules").is_dir()
pytestmark = pytest.mark.skipif(not is_installed, reason=f"needs node, and npm install in {FOLDER.name}/")
WAYS = ("json-gzip", "json-none", "protobuf-gzip", "protobuf-none")


def test_the_javascript_exporters_deliver_and_read_a_partial_success(server_url: str) -> None:
    team = make_team("Harbour", owner="alice")
    _, key = make_key(team, User.objects.get(username="alice"), Scope.INGEST)
    done = subprocess.run(
        [NODE or "", str(FOLDER / "walk.mjs"), server_url, key],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    sessions = AgentSession.objects.order_by("external_id")
    found = [(each.external_id, str(each.client_cost_usd), each.client_version) for each in sessions]
    assert found == [(way, "0.75000000", "2.1.325") for way in WAYS]
    for session in sessions:
        logged, spanned = ApiCall.objects.filter(session=session).order_by("duration_seconds")[::-1]
        assert (logged.request_id, logged.duration_seconds) == (f"req_{session.external_id}", 1.5)
        assert (logged.read_tokens, logged.output_tokens) == (20_000, 50)
        assert (spanned.call_id, spanned.input_tokens) == (f"msg_{session.external_id}", 1_000)
        assert (spanned.read_tokens, spanned.stop_reason) == (20_000, "end_turn")
    warned = json.loads(done.stdout)
    told = [warning.partition(": ") for way in WAYS for warning in warned[way]]
    assert [title for title, _, _ in told] == ["Received Partial Success response"] * len(WAYS), warned
    for _, _, answer in told:
        partial = json.loads(answer)
        assert int(partial["rejectedLogRecords"]) == 1
        assert partial["errorMessage"] == "Dropped: 1 of them: names no session."
