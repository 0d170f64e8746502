"""What fills the context: by category, tool and file; duplicate reads; the largest results."""

from pathlib import Path

import pytest

from compaction.context.composition import Composition, Share, compute_composition, compute_prefix_tokens
from compaction.context.tokens import estimate_tokens, measure_context
from compaction.transcripts.chain import ContextSlice, follow_chain, slice_context
from compaction.transcripts.entries import Entry
from tests.compaction.making import answer, make_entry, request, result, say, text, thought, use
from tests.compaction.recorded import each_recorded, read_recorded

PICTURE = {"type": "image", "source": {"type": "base64", "data": ""}}


def compose(*found: Entry, **options: object) -> Composition:
    return compute_composition(ContextSlice(found), **options)  # type: ignore[arg-type]


def read_file(use_id: str, path: str, content: object = "x" * 400, **arguments: object) -> tuple[Entry, Entry]:
    asked = answer(f"m-{use_id}", request(use_id, "Read", file_path=path, **arguments))
    return asked, say([result(use_id, content)])


def test_every_token_is_in_one_category() -> None:
    composition = compose(
        say("x" * 30),
        say("x" * 60, isCompactSummary=True),
        answer("m1", thought("x" * 12), text("x" * 24), request("t1", "Bash", command="x")),
        say([result("t1", [text("x" * 90), PICTURE]), PICTURE]),
        make_entry("attachment", attachment={"type": "date"}, rendered=[{"content": "x" * 36}]),
        answer("m2", {"type": "server_tool_use"}),
    )
    assert {(share.category, share.name): (share.tokens, share.count) for share in composition.shares} == {
        ("images", None): (5_334, 2),
        ("tool results", "Bash"): (31, 1),
        ("summary", None): (20, 1),
        ("attachments", "date"): (12, 1),
        ("user text", None): (11, 1),
        ("other", None): (10, 1),
        ("assistant text", None): (8, 1),
        ("tool requests", "Bash"): (7, 1),
        ("thinking", None): (4, 1),
    }
    assert [share.tokens for share in composition.shares] == sorted(
        (s.tokens for s in composition.shares), reverse=True
    )
    assert composition.sum_category("images") == 5_334
    assert not composition.is_prefix_known


def test_the_prefix_is_what_the_first_call_read_beyond_its_messages() -> None:
    found = (say("x" * 300), answer("m1", text("a"), usage=use(20, 1, cache_read_input_tokens=17_000)))
    assert compute_prefix_tokens(ContextSlice(found)) == 16_920
    assert Share("system and tools", 16_920, 1) in compose(*found).shares


def test_the_prefix_of_a_known_request_wins() -> None:
    shape = make_entry("api-request-shape", shapeHash="h", shape={"system": ["x" * 300]})
    found = (say("go"), answer("m1", usage=use(20_000, 1)))
    assert compute_prefix_tokens(ContextSlice(found), shapes=[shape]) == 106


def test_what_came_back_unrecorded_after_a_compaction_is_not_system_and_tools() -> None:
    before = (say("x" * 300), answer("m1", text("a"), usage=use(20, 1, cache_read_input_tokens=17_000)))
    boundary = make_entry("system", subtype="compact_boundary", compactMetadata={"trigger": "auto"})
    summary = say("x" * 3_000, isCompactSummary=True)
    chain = (*before, boundary, summary, answer("m2", text("b"), usage=use(30_000, 1)))
    context = slice_context(chain)
    composition = compute_composition(context, opening=chain)
    assert Share("system and tools", 16_920, 1) in composition.shares
    assert Share("restored, not recorded", 30_000 - 1_000 - 16_920, 1) in composition.shares
    assert compute_prefix_tokens(context, opening=chain) == 16_920
    # Without a call before it nobody can tell the two apart.
    alone = compute_composition(context)
    assert Share("system and tools", 29_000, 1) in alone.shares
    assert alone.sum_category("restored, not recorded") == 0
    assert alone.tokens == composition.tokens


def test_what_came_before_a_transcript_is_not_system_and_tools() -> None:
    found = (
        say("x" * 300, parentUuid="in another file"),
        answer("m1", text("a"), usage=use(20, 1, cache_read_input_tokens=90_000)),
    )
    composition = compose(*found, opening=found)
    assert Share("before this transcript", 89_920, 1) in composition.shares
    assert not composition.is_prefix_known
    shape = make_entry("api-request-shape", shapeHash="h", shape={"system": ["x" * 300]})
    known = compose(*found, opening=found, shapes=[shape])
    assert Share("before this transcript", 89_920 - 106, 1) in known.shares
    assert known.sum_category("system and tools") == 106


def test_compaction_ends_what_came_before_a_transcript() -> None:
    first = say("x" * 300, parentUuid="in another file")
    boundary = make_entry("system", subtype="compact_boundary", compactMetadata={"trigger": "auto"})
    chain = (
        first,
        answer("m1", usage=use(90_000, 1)),
        boundary,
        say("s", isCompactSummary=True),
        answer("m2", usage=use(30_000, 1)),
    )
    composition = compute_composition(slice_context(chain), opening=chain)
    assert composition.sum_category("before this transcript") == 0
    assert composition.is_prefix_known


def test_nothing_is_restored_without_a_compaction() -> None:
    shape = make_entry("api-request-shape", shapeHash="h", shape={"system": ["x" * 300]})
    found = (say("go"), answer("m1", usage=use(20_000, 1)))
    assert compose(*found, shapes=[shape], opening=found).sum_category("restored, not recorded") == 0


def test_a_file_read_again_is_wasted() -> None:
    composition = compose(
        *read_file("t1", "/a"), *read_file("t2", "/a"), *read_file("t3", "/b"), *read_file("t4", "/a")
    )
    (duplicate,) = composition.duplicate_reads
    assert (duplicate.path, duplicate.read_count, duplicate.wasted_tokens) == ("/a", 3, 267)
    assert [(share.name, share.count) for share in composition.files] == [("/a", 6), ("/b", 2)]


def test_what_files_take_is_part_of_what_their_tool_takes() -> None:
    composition = compose(
        *read_file("t1", "/a"), *read_file("t2", "/b", [text("x" * 90), PICTURE]), *read_file("t3", "/a")
    )
    shares = {(share.category, share.name): share.tokens for share in composition.shares}
    for category in ("tool requests", "tool results"):
        own = [share.tokens for share in composition.file_shares if share.category == category]
        assert len(own) == 2  # one each for /a and /b; a picture is not among the results
        assert shares[category, "Read"] == pytest.approx(sum(own), abs=2)
    assert {(share.tool, share.path) for share in composition.file_shares} == {("Read", "/a"), ("Read", "/b")}


@pytest.mark.parametrize(
    ("second", "wasted"),
    [
        ({"offset": 101, "limit": 100}, 0),
        ({"offset": 100, "limit": 1}, 1),
        ({"offset": 50}, 1),
        ({}, 1),
        ({"content": "File unchanged since last read. Use the earlier one."}, 0),
        ({"content": "[Old tool result content cleared]"}, 0),
        ({"content": []}, 0),
    ],
)
def test_other_lines_stubs_and_cleared_results_are_no_duplicates(second: dict[str, object], wasted: int) -> None:
    first = read_file("t1", "/a", offset=1, limit=100)
    again = read_file("t2", "/a", second.pop("content", "x" * 400), **second)
    assert len(compose(*first, *again).duplicate_reads) == wasted


def test_the_clients_own_mark_for_an_unchanged_file_is_no_reading() -> None:
    stub = say([result("t2", "nothing new")], toolUseResult={"type": "file_unchanged"})
    again = answer("m2", request("t2", "Read", file_path="/a"))
    assert not compose(*read_file("t1", "/a"), again, stub).duplicate_reads


def test_the_largest_results_come_first_with_tool_and_path() -> None:
    composition = compose(
        *read_file("t1", "/a", "x" * 40),
        *read_file("t2", "/b", "x" * 4_000),
        say([result("lost", "x" * 80)]),
        largest=2,
    )
    found = [(large.tool_use_id, large.tool, large.path, large.tokens) for large in composition.largest_results]
    assert found == [("t2", "Read", "/b", 1_334), ("lost", "unknown", None, 27)]


@each_recorded()
@pytest.mark.recorded_data
def test_recorded_compositions_add_up_to_the_estimate(path: Path) -> None:
    entries = read_recorded(path).entries
    context = slice_context(follow_chain(entries))
    composition = compute_composition(context, opening=entries)
    prefix = composition.sum_category("system and tools") + composition.sum_category("restored, not recorded")
    estimate = estimate_tokens(context.entries)
    assert estimate <= composition.tokens - prefix <= estimate + len(composition.shares)
    if not path.stem.startswith("agent-"):
        assert 0.5 < composition.tokens / measure_context(context).tokens < 1.5
