"""The Anthropic TypeScript SDK through the proxy: a call, a stream, beta, counting, errors as it knows them.

`make test` installs it beside walk.mjs.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.dashboard.proxy.serving import KEY, Serving
from tests.dashboard.proxy.test_sdk import answer_as_api
from tests.fakes.raw_upstream import Connection, RawUpstream

FOLDER = Path(__file__).parent / "typescript"
NODE = shutil.which("node")
is_installed = NODE is not None and (FOLDER / "node_modules").is_dir()
pytestmark = pytest.mark.skipif(not is_installed, reason=f"needs node, and npm install in {FOLDER.name}/")


def answer_or_refuse(connection: Connection) -> None:
    asked = json.loads(connection.seen.body)
    if "count_tokens" in connection.seen.target:
        connection.answer(b'{"input_tokens":7}', ("content-type", "application/json"))
    elif asked["max_tokens"] == 529:
        body = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
        connection.answer(body, ("content-type", "application/json"), status="529 Overloaded")
    else:
        answer_as_api(connection)


def test_the_typescript_sdk_walks_through_the_proxy(proxy: Serving, upstream: RawUpstream) -> None:
    upstream.script = answer_or_refuse
    done = subprocess.run(
        [NODE or "", str(FOLDER / "walk.mjs"), f"{proxy.url}/proxy", KEY],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["text"], told["read"], told["request"]) == ("Ahoy", 5, "req_1")
    assert told["stream"] == {"words": "Ahoy there", "stop": "end_turn", "output": 40}
    assert (told["beta"], told["count"]) == ("msg_1", 7)
    assert (told["refused"]["name"], told["refused"]["status"]) == ("AuthenticationError", 401)
    assert "Plimsoll: the key is unknown" in told["refused"]["words"]
    assert (told["overloaded"]["status"], told["overloaded"]["name"]) == (529, "OverloadedError")
    assert all(seen.header("x-plimsoll-key") is None for seen in upstream.requests)
    assert upstream.requests[2].header("anthropic-beta") == "context-management-2025-06-27"
    assert "sk-ant-test" not in repr(proxy.wait_for_exchange(4))
