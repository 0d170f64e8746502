"""`manage.py migrate` and the WSGI application of `manage.py runserver` work from an empty data folder."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Run in a process of its own: importing the application builds the static files.
REQUESTS = """
import re
from django.core.servers.basehttp import get_internal_wsgi_application
from django.test import RequestFactory

application = get_internal_wsgi_application()

def get(path):
    answers = []
    environ = RequestFactory(SERVER_NAME="localhost").get(path).environ
    body = b"".join(application(environ, lambda status, *_: answers.append(status)))
    return answers[0], body

status, page = get("/sign-in/")
print(status)
for path in re.findall('(?:href|src)="(/static/[^"]+)"', page.decode()):
    print(get(path)[0])
"""


def test_pages_and_their_static_files_are_served_from_an_empty_data_folder(tmp_path: Path) -> None:
    names = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environment = {**names, "PLIMSOLL_DATA": str(tmp_path)}
    for program in (["migrate", "--verbosity", "0"], ["shell", "--no-imports", "--command", REQUESTS]):
        done = subprocess.run(
            [sys.executable, "manage.py", *program],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    statuses = done.stdout.splitlines()
    assert len(statuses) > 10
    assert set(statuses) == {"200 OK"}
