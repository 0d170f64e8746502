"""Readers of the environment: what they take, what they refuse, and that the refusal names the variable."""

import multiprocessing
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from dashboard.environment import (
    BadSetting,
    read_choice,
    read_flag,
    read_folder,
    read_int,
    read_origin,
    read_places,
    read_secret,
    read_service,
    read_text,
)

NAME = "PLIMSOLL_TEST_VALUE"


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    return lambda text: monkeypatch.setenv(NAME, text)


def test_absent_or_blank_means_the_default(put: Callable[[str], None], tmp_path: Path) -> None:
    for text in (None, "", "   "):
        if text is not None:
            put(text)
        assert read_text(NAME, "x") == "x"
        assert read_int(NAME, 7, low=1, high=9) == 7
        assert read_flag(NAME, default=True) is True
        assert read_choice(NAME, "a", choices=("a", "b")) == "a"
        assert read_origin(NAME) is None
        assert read_folder(NAME, tmp_path / "folder") == tmp_path / "folder"


@pytest.mark.parametrize("text", ["0", "10", "-1", "1.5", "seven", "٣", "1" * 400])
def test_bad_numbers_are_refused(put: Callable[[str], None], text: str) -> None:
    put(text)
    with pytest.raises(BadSetting, match=rf"{NAME}=.*from 1 to 9"):
        read_int(NAME, 7, low=1, high=9)


@pytest.mark.parametrize(
    ("text", "expected"), [("1", True), ("Yes", True), ("on", True), ("0", False), ("FALSE", False)]
)
def test_flags_are_read(put: Callable[[str], None], text: str, *, expected: bool) -> None:
    put(text)
    assert read_flag(NAME, default=not expected) is expected


def test_bad_flags_and_choices_are_refused(put: Callable[[str], None]) -> None:
    put("maybe")
    with pytest.raises(BadSetting, match=NAME):
        read_flag(NAME, default=True)
    with pytest.raises(BadSetting, match=f"{NAME}='maybe': expected one of a, b"):
        read_choice(NAME, "a", choices=("a", "b"))


@pytest.mark.parametrize(
    "text",
    [
        "plimsoll.example",
        "ftp://x",
        "https://",
        "https://x/path",
        "https://x?q",
        "https://u:p@x",
        "https://x:0",
        "https://x:y",
    ],
)
def test_bad_addresses_are_refused(put: Callable[[str], None], text: str) -> None:
    put(text)
    with pytest.raises(BadSetting, match=NAME):
        read_origin(NAME)


def test_address_loses_its_trailing_slash(put: Callable[[str], None]) -> None:
    put("https://plimsoll.example:8443/")
    origin = read_origin(NAME)
    assert origin is not None
    assert origin.geturl() == "https://plimsoll.example:8443"


def test_folder_is_made_for_its_owner_alone(put: Callable[[str], None], tmp_path: Path) -> None:
    put(str(tmp_path / "a" / "b"))
    assert stat.S_IMODE(read_folder(NAME, tmp_path).stat().st_mode) == 0o700


def test_relative_folder_is_taken_from_here(
    put: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put("here")
    assert read_folder(NAME, tmp_path) == tmp_path / "here"


def test_file_in_the_folders_place_is_refused(put: Callable[[str], None], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        put(str(path))
        with pytest.raises(BadSetting, match=NAME):
            read_folder(NAME, tmp_path)


def test_secret_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    kept = tmp_path / "secret_key"
    first = read_secret(NAME, kept)
    assert len(first) >= 50
    assert read_secret(NAME, kept) == first
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [kept]


def test_given_secret_wins_and_a_short_one_is_refused_unseen(put: Callable[[str], None], tmp_path: Path) -> None:
    put("s" * 32)
    assert read_secret(NAME, tmp_path / "secret_key") == "s" * 32
    put("hunter2")
    with pytest.raises(BadSetting, match=NAME) as caught:
        read_secret(NAME, tmp_path / "secret_key")
    assert "hunter2" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def _read(path: Path) -> str:
    return read_secret(NAME, path)


def test_processes_that_start_together_agree_on_one_secret(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert len(set(pool.map(_read, [tmp_path / "secret_key"] * 16))) == 1


def test_places_are_separated_as_in_path_and_need_not_exist(put: Callable[[str], None], tmp_path: Path) -> None:
    assert read_places(NAME, [tmp_path]) == (tmp_path,)
    put(f"/a:{tmp_path}/missing: ::/a:~/b")
    assert read_places(NAME, []) == (Path("/a"), tmp_path / "missing", Path.home() / "b")
    for nothing in ("", "  ", "off", "OFF"):
        put(nothing)
        assert read_places(NAME, [tmp_path]) == ()


@pytest.mark.parametrize("text", ["~nobody-of-this-name/x"])
def test_bad_places_are_refused(put: Callable[[str], None], text: str) -> None:
    put(text)
    with pytest.raises(BadSetting, match=f"{NAME}=.*expected folders"):
        read_places(NAME, [])


API = "https://api.example"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("", API),
        ("https://gateway.example/claude/", "https://gateway.example/claude"),
        ("http://127.0.0.1:9000", "http://127.0.0.1:9000"),
        ("http://[::1]:9000/x", "http://[::1]:9000/x"),
        ("http://localhost", "http://localhost"),
    ],
)
def test_service_that_is_sent_secrets_is_https_or_on_this_machine(
    put: Callable[[str], None], text: str, read: str
) -> None:
    put(text)
    assert read_service(NAME, API) == read


@pytest.mark.parametrize(
    "text",
    [
        "http://gateway.example",
        "http://127.0.0.1.example",
        "ftp://127.0.0.1",
        "https://",
        "https://user:word@gateway.example",
        "https://gateway.example/?x=1",
        "https://gateway.example/#x",
        "https://gateway.example:99999",
        "gateway.example",
    ],
)
def test_service_that_could_be_listened_to_is_refused_by_name(put: Callable[[str], None], text: str) -> None:
    put(text)
    with pytest.raises(BadSetting, match=NAME):
        read_service(NAME, API)
