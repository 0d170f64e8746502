"""A follower that is killed again and again while sessions are being written."""

import random
import time
from functools import partial
from pathlib import Path

from tests.dashboard.running import wait_until
from tests.faults.growing_sessions import SESSIONS, TURNS, append, describe, make_sessions, take_in_once
from tests.faults.installation import Installation

KILLS = 6


def test_killed_while_sessions_grow(installation: Installation, migrated_folder: Path, tmp_path: Path) -> None:
    """At the end every row is as if each file had been taken in once, in one piece."""
    chance = random.Random(7)
    root = tmp_path / "projects"
    files = {root / name: data for name, data in make_sessions(chance).items()}

    def read_bytes() -> dict[str, int]:
        return dict(installation.database.rows('SELECT path, "offset" FROM dashboard_followedfile'))

    def has_read_more_than(count: int) -> bool:
        return sum(read_bytes().values()) > count

    for part in range(KILLS):
        before = sum(read_bytes().values())
        follower = installation.start("follow", PLIMSOLL_FOLLOW=str(root))
        for path, data in files.items():
            append(path, data[len(data) * part // (KILLS + 1) : len(data) * (part + 1) // (KILLS + 1)])
        wait_until(partial(has_read_more_than, before), seconds=60, what="something read")
        time.sleep(chance.uniform(0, 0.05))
        follower.kill()
        follower.wait()
    follower = installation.start("follow", PLIMSOLL_FOLLOW=str(root))
    for path, data in files.items():
        append(path, data[len(data) * KILLS // (KILLS + 1) :])
    sizes = {str(path): len(data) for path, data in files.items()}
    wait_until(lambda: read_bytes() == sizes, seconds=60, what="every file read to its end")
    follower.terminate()
    assert follower.wait(10) == 0
    reference = take_in_once(migrated_folder, tmp_path / "reference", root)
    assert describe(installation) == reference
    assert len(reference["ApiCall"]) == (SESSIONS + 1) * TURNS
