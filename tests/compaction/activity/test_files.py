"""The newest content of a file is told from the transcript alone."""

import pytest

from compaction.activity.files import TouchedFile, list_shown_paths, read_touched_files, strip_line_numbers
from compaction.activity.tool_calls import read_activity
from tests.compaction.compactors.sessions import Session


def know(session: Session, path: str = "/a") -> TouchedFile:
    files = read_touched_files(session.entries, read_activity(session.entries))
    return next(file for file in files if file.path == path)


def test_reads_writes_and_edits_add_up() -> None:
    session = Session()
    session.read("/a", "one\ntwo\nthree")
    session.edit("/a", "two", "2")
    session.do(
        "MultiEdit",
        file_path="/a",
        edits=[{"old_string": "one", "new_string": "1"}, {"old_string": "3", "new_string": "x"}],
    )
    file = know(session)
    assert (file.reads, file.edits, file.writes) == (1, 2, 0)
    # The second of the last edits replaced something that is not there: what the file holds is not known any more.
    assert file.whole is None
    session.write("/a", "anew")
    assert know(session).whole == "anew"


def test_the_clients_own_record_of_the_file_before_an_edit_is_believed() -> None:
    session = Session()
    session.edit("/a", "two", "2", details={"originalFile": "one two two", "filePath": "/a"})
    assert know(session).whole == "one 2 two"
    session.edit("/a", "o", "0", replace_all=True)
    assert know(session).whole == "0ne 2 tw0"


def test_a_part_that_was_read_is_known_with_its_first_line() -> None:
    session = Session()
    session.do(
        "Read", "    40→forty\n    41→more\n\n<system-reminder>x</system-reminder>", file_path="/a", offset=40, limit=2
    )
    file = know(session)
    assert file.whole is None
    assert file.extract is not None
    assert (file.extract.text, file.extract.first_line) == ("forty\nmore", 40)


def test_a_stub_or_a_cleared_result_is_no_content_but_the_clients_record_is() -> None:
    session = Session()
    session.do("Read", "File unchanged since last read. Use the earlier result.", file_path="/a")
    assert know(session).content is None
    file = {"filePath": "/a", "content": "kept", "numLines": 1, "startLine": 1, "totalLines": 1}
    session.do("Read", "[Old tool result content cleared]", file_path="/a", details={"type": "text", "file": file})
    assert know(session).whole == "kept"


def test_refused_requests_touch_nothing_and_restored_copies_do() -> None:
    session = Session()
    session.do("Read", "File does not exist.", file_path="/gone", is_error=True)
    assert read_touched_files(session.entries, read_activity(session.entries)) == ()
    result = {"filePath": "/a", "content": "back", "numLines": 1, "startLine": 1, "totalLines": 9}
    session.attach_fields("file", filename="/a", content={"type": "text", "file": result})
    file = know(session)
    assert file.whole is None
    assert file.content == "back"


def test_the_most_recently_touched_file_comes_first() -> None:
    session = Session()
    for path in ("/a", "/b", "/c"):
        session.read(path, path)
    session.edit("/a", "/a", "x")
    assert [file.path for file in read_touched_files(session.entries, read_activity(session.entries))] == [
        "/a",
        "/c",
        "/b",
    ]


def test_only_reads_and_writes_show_a_file() -> None:
    session = Session()
    session.read("/read", "x")
    session.write("/written", "x")
    session.edit("/edited", "x", "y")
    session.do("Read", "File unchanged since last read.", file_path="/stub")
    session.do("Read", "[Old tool result content cleared]", file_path="/cleared")
    session.do("Read", "no", file_path="/refused", is_error=True)
    assert list_shown_paths(read_activity(session.entries).tool_calls) == {"/read", "/written"}


@pytest.mark.parametrize("mark", ["→", "\t"])
def test_line_numbers_of_both_kinds_are_taken_off(mark: str) -> None:
    assert strip_line_numbers(f"     7{mark}a\n     8{mark}\tb").text == "a\n\tb"
    assert strip_line_numbers("plain").text == "plain"
