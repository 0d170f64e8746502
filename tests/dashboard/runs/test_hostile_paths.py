"""S9: paths that others name, in every way they can be named, lead to no file outside the watched folder.

The audit hook sees every opening, listing, linking, renaming and removal of this process.
"""

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5
from zoneinfo import TZPATH

import pytest
from django.conf import settings as configured
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from dashboard.ingest.followed_files import digest_path
from dashboard.models import AgentSession, FollowedFile, ResumedFile
from dashboard.pages.resume_page import read_resume_ways
from dashboard.runs.choices import RunRefused
from dashboard.runs.original_lines import read_originals
from dashboard.runs.resume import download_resumed, write_beside
from dashboard.runs.resumed_files import forget_missing, look_at, undo_resumed_file
from tests.builders import make_session
from tests.dashboard.ingest.conversation import Conversation
from tests.dashboard.runs.machine import PROJECT, Machine, compact, make_machine
from tests.dashboard.runs.world import person
from tests.visitors import read, sign_in

pytestmark = pytest.mark.django_db
SESSION_ID = str(uuid5(NAMESPACE_URL, "hostile"))
NAME = f"{SESSION_ID}.jsonl"
SECRET = (
    b'{"type":"user","uuid":"s","timestamp":"2026-05-01T10:00:00.000Z","message":{"role":"user","content":"SECRET"}}\n'
)
HOSTILE = (
    "absolute", "up", "up in the middle", "relative up", "link to a file", "link to a folder", "dangling link",
    "/proc of itself", "root in /proc", "descriptor", "device", "pipe", "socket", "second name of a file",
    "folder that begins alike", "NUL", "very long", "other dots", "other case", "trailing dots", "somebody else's",
    "encoded dots", "double slashes",
)  # fmt: skip
EVENTS = (
    "open", "os.listdir", "os.scandir", "os.link", "os.rename", "os.remove", "os.symlink", "os.mkdir", "os.truncate",
    "os.chmod", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn",
)  # fmt: skip
_seen: list[tuple[str, object, object]] = []
_is_recording = False


def _record(event: str, arguments: tuple[object, ...]) -> None:
    if _is_recording and event in EVENTS:
        _seen.append((event, arguments[0], arguments[2] if event == "open" and len(arguments) > 2 else None))


sys.addaudithook(_record)  # cannot be taken away again; it does nothing while nobody records


@contextmanager
def watched(machine: Machine, *, follows: bool = False) -> Iterator[None]:
    """What happens inside touches the watched folder, the program's own files and the data folder alone. A follower
    looks into every plain file of that folder; nobody else opens one that is not as it should be."""
    global _is_recording  # noqa: PLW0603 (an audit hook has no other way to be told)
    _seen.clear()
    _is_recording = True
    try:
        yield
    finally:
        _is_recording = False
    own = [str(machine.root), sys.prefix, sys.base_prefix, str(configured.ASSETS), str(configured.DATA), *TZPATH]
    if sys.pycache_prefix:
        own.append(sys.pycache_prefix)
    for event, place, flags in _seen:
        if isinstance(place, int):  # a descriptor that was opened before
            continue
        name = os.fsdecode(place) if isinstance(place, str | bytes) else str(place)
        if "/" not in name:
            assert name not in (() if follows else (NAME,)), (event, name)
            assert name not in ("..", "."), (event, name)
            assert event != "open" or (isinstance(flags, int) and flags & os.O_NOFOLLOW), (event, name)
            continue
        real = os.path.normpath(name)
        assert any(real == folder or real.startswith(f"{folder}/") for folder in own), (event, name)
        assert ".." not in name.split("/"), (event, name)


@pytest.fixture
def machine(tmp_path: Path, settings: Settings) -> Machine:
    return make_machine(tmp_path, settings)


@pytest.fixture
def path(request: pytest.FixtureRequest, machine: Machine, tmp_path: Path) -> Iterator[str]:
    """One hostile path; what it leads to is there, and holds a secret."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / NAME).write_bytes(SECRET)
    root, project = machine.root, machine.root / PROJECT
    project.mkdir()
    (root / "linked").symlink_to(outside)
    alike = Path(f"{root}-other")
    alike.mkdir()
    (alike / NAME).write_bytes(SECRET)
    here, kind = project / NAME, request.param
    listening = None
    match kind:
        case "link to a file":
            here.symlink_to(outside / NAME)
        case "dangling link":
            here.symlink_to(tmp_path / "nowhere")
        case "pipe":
            os.mkfifo(here)
        case "socket":
            listening = socket.socket(socket.AF_UNIX)
            os.chdir(project)
            listening.bind(NAME)
        case "second name of a file":
            os.link(outside / NAME, here)
        case "somebody else's":
            here.write_bytes(SECRET)
            if os.geteuid() == 0:
                os.chown(here, 65_534, 65_534)
            else:
                os.link(here, project / "so that it is refused as any other")
    yield {
        "absolute": "/etc/passwd",
        "up": f"{root}/../outside/{NAME}",
        "up in the middle": f"{project}/../../outside/{NAME}",
        "relative up": f"../../outside/{NAME}",
        "link to a folder": f"{root}/linked/{NAME}",
        "/proc of itself": "/proc/self/environ",
        "root in /proc": f"/proc/self/root{outside}/{NAME}",
        "descriptor": "/dev/fd/0",
        "device": "/dev/zero",
        "folder that begins alike": f"{root}-other/{NAME}",
        "NUL": f"{project}/a\x00/../../../outside/{NAME}",
        "very long": f"{root}/{'a' * 5000}/{NAME}",
        "other dots": f"{root}/\u2025/\uff0e\uff0e/outside/{NAME}",
        "other case": f"{str(root).upper()}/{NAME}",
        "trailing dots": f"{root}/.../../outside/{NAME}",
        "encoded dots": f"{root}/%2e%2e/outside/{NAME}",
        "double slashes": f"{root}//..//outside/{NAME}",
    }.get(kind, str(here))
    os.chdir(tmp_path)
    if listening is not None:
        listening.close()


every_path = pytest.mark.parametrize("path", HOSTILE, indirect=True)


def _undo(row: ResumedFile) -> str:
    try:
        return undo_resumed_file(row, by=None, now=timezone.now())
    except RunRefused as refused:
        return refused.code


@every_path
def test_a_followed_path_leads_nowhere_outside(machine: Machine, path: str) -> None:
    """The transcript path: of a session's file, and of a file that was written."""
    session = make_session(machine.team, SESSION_ID)
    shown = path.replace("\x00", "\ufffd")[:4096]
    FollowedFile.objects.create(team=machine.team, path=shown, path_digest=digest_path(path))
    row = ResumedFile.objects.create(
        team=machine.team, external_id="x", path=shown, digest=sha256(SECRET).hexdigest(), size_bytes=len(SECRET)
    )
    before = sorted(machine.root.parent.rglob("*"))
    with watched(machine):
        found = read_originals(session)
        assert look_at(row) in (None, "missing")
        forget_missing(now=timezone.now() + timedelta(days=1))
        undone = _undo(row)
    assert undone in ("missing", "not_here", "cannot_remove")
    assert found.entries == {}
    assert sorted(machine.root.parent.rglob("*")) == before
    assert (machine.root.parent / "outside" / NAME).read_bytes() == SECRET


@every_path
def test_a_path_inside_a_conversation_is_only_a_name(machine: Machine, path: str) -> None:
    """The folder it ran in, files of tools, a plan, a sub-agent: followed, compacted, shown, written, downloaded."""
    talk = Conversation("hostile words")
    talk.ask("Plan it.")
    for number, (tool, key) in enumerate(
        (("Read", "file_path"), ("Edit", "file_path"), ("NotebookEdit", "notebook_path"))
    ):
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": {key: path, "plan": path}}
        message = {"id": f"hostile-{number}", "role": "assistant", "model": "claude-opus-4-5", "content": [use]}
        usage = {"input_tokens": 1, "output_tokens": 1}
        talk.write("assistant", message=message | {"usage": usage}, cwd=path, requestId=f"r{number}")
        block = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "1\tdepth"}
        answer = {"type": "text", "file": {"filePath": path, "content": "depth", "numLines": 1, "totalLines": 1}}
        talk.write("user", message={"role": "user", "content": [block]}, toolUseResult=answer, cwd=path)
    for kind in ("plan_file_reference", "file", "invoked_skills", "nested_memory"):
        named = {
            "type": kind,
            "planFilePath": path,
            "filename": path,
            "path": path,
            "planContent": "go",
            "content": "x",
        }
        talk.write("attachment", attachment=named, cwd=path)
    talk.answer("hostile-end", written=9 + 3 * len(path))
    talk.lines = [
        line.replace(b'"cwd":"/home/ann/harbour"', f'"cwd":{json.dumps(path)}'.encode()) for line in talk.lines
    ]
    machine.keep(talk)
    client = sign_in("alice")
    with watched(machine, follows=True):
        machine.follow()
        session = machine.find(talk.session_id)
        run = compact(session)
        row = write_beside(run, None, by=None, now=timezone.now())
        made = download_resumed(run, None, by=None, now=timezone.now())
        assert read_resume_ways(person("alice"), run) is not None
        read(client, reverse("run", args=[run.pk]))
        read(client, reverse("session", args=[session.pk]))
    assert Path(row.path).parent == machine.root / PROJECT
    assert b"SECRET" not in made.data
    assert b"SECRET" not in Path(row.path).read_bytes()


@every_path
def test_the_name_of_an_upload_and_of_a_session_opens_nothing(machine: Machine, path: str) -> None:
    """Upload's file name, the session's id, the sub-agent's id: none becomes part of a path that is opened."""
    talk = Conversation("hostile names")
    talk.session_id = path
    talk.ask("Go.")
    talk.answer("named-1", written=9)
    talk.ask("On.")
    talk.answer("named-2", written=9)
    client = sign_in("alice")
    with watched(machine):
        file = SimpleUploadedFile("part.jsonl", talk.data)
        response = client.post(reverse("upload_part"), {"name": path, "file": file, "team": machine.team.slug})
        assert response.status_code == 200, response.content
        session = AgentSession.objects.filter(team=machine.team).latest("pk")
        run = compact(session)
        with pytest.raises(RunRefused) as refused:
            write_beside(run, None, by=None, now=timezone.now())
        made = download_resumed(run, None, by=None, now=timezone.now())
        for agent_id in (path, f"/../../../{path}"):
            assert read_originals(session, agent_id).entries == {}
        client.get(reverse("resume_download", args=[run.pk]))
    assert refused.value.code == "no_original"
    assert b"SECRET" not in made.data
    assert len(made.file_name) == 42
