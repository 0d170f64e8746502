import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.cache.diff_causes import find_diff_causes
from compaction.cache.prefix_diff import diff_fingerprints, diff_requests
from compaction.errors import BodyUnreadable
from compaction.prompt.fingerprint import fingerprint_request, read_fingerprint
from compaction.prompt.linter import lint_request
from compaction.prompt.request import Marker, PromptLevel, find_server, read_raw_body, read_request, write_canonical
from compaction.transcripts.entries import Entry
from tests.compaction.cache.builders import body, digest, prints, text, tool
from tests.compaction.cache.recorded_requests import list_requests
from tests.compaction.making import answer, make_entry
from tests.compaction.making import use as use_tokens


def test_markers_are_set_apart_with_paths_that_skip_the_version_stamp() -> None:
    assert read_request(body()).markers == (
        Marker(("system", 0)),
        Marker(("system", 1)),
        Marker(("messages", 2, "content", 0)),
    )
    assert "cache_control" not in json.dumps([dict(block) for block in read_request(body()).system])


def test_markers_inside_tool_results_and_references_for_deletions_are_set_apart() -> None:
    inner = {"type": "tool_result", "tool_use_id": "t", "content": [text("x", marked="1h")], "cache_reference": "t"}
    bare = {"type": "tool_result", "tool_use_id": "t", "content": [text("x")]}
    marked, plain = (read_request(body(messages=[{"role": "user", "content": [each]}])) for each in (inner, bare))
    assert marked.messages == plain.messages
    assert marked.markers[-1] == Marker(("messages", 0, "content", 0, "content", 0), "1h")


def test_cache_edits_are_a_setting_and_no_part_of_a_message() -> None:
    edits = {"type": "cache_edits", "edits": [{"type": "delete", "cache_reference": "t"}]}
    request = read_request(body(messages=[{"role": "user", "content": [text("x"), edits]}]))
    assert len(request.messages[0].blocks) == 1
    assert dict(request.settings)["cached_micro"] == "t"


def test_deletions_are_the_same_in_any_order_and_place_and_whoever_tells_of_them() -> None:
    def delete(*names: str) -> dict[str, object]:
        return {"type": "cache_edits", "edits": [{"type": "delete", "cache_reference": name} for name in names]}

    one = prints(messages=[{"role": "user", "content": [text("x"), delete("t", "u"), delete("u")]}])
    other = prints(messages=[{"role": "user", "content": [delete("u", "t"), text("x")]}])
    told = prints(messages=[{"role": "user", "content": [text("x")]}], state={"cached_micro": "t\nu"})
    assert len(one.deletions) == 2
    assert one.settings == other.settings == told.settings
    odd: list[object] = [None, 7, [None, 7], {"cache_reference": 3}]
    blocks = [{"type": "cache_edits", "edits": edits} for edits in odd]
    assert len(prints(messages=[{"role": "user", "content": blocks}]).deletions) == 3


def test_automatic_caching_counts_as_a_marker_on_the_last_block() -> None:
    request = read_request(
        {"model": "m", "messages": [{"role": "user", "content": "x"}], "cache_control": {"type": "e"}}
    )
    assert request.markers == (Marker(("messages", 0, "content", 0)),)


def test_beta_header_is_taken_as_text_or_as_a_list() -> None:
    assert read_request(body(), betas="b, a").settings == read_request(body(), betas=["a", "b"]).settings
    assert read_request(body(betas=["a", "b"])).settings == read_request(body(), betas=["b", "a"]).settings


def test_system_as_a_string_is_one_text_block() -> None:
    assert prints(system="You are.").system == prints(system=[text("You are.")]).system


def test_role_system_inside_messages_is_a_message() -> None:
    found = prints(messages=[{"role": "user", "content": "a"}, {"role": "system", "content": []}])
    assert (len(found.messages), found.system_messages) == (2, (1,))


@pytest.mark.parametrize("odd", [None, 5, "x", [], {}, [None, 7], [{"role": 3, "content": 9}]])
def test_odd_bodies_are_read_without_complaint(odd: object) -> None:
    request = read_request({"model": odd, "system": odd, "tools": odd, "messages": odd, "thinking": odd})
    assert fingerprint_request(request, digest)


def test_no_prompt_text_is_left_in_a_fingerprint() -> None:
    found = prints("my secret plan", thinking={"type": "enabled", "secret": 1}, extra="my secret plan")
    stored = json.dumps(found.to_fields())
    assert "secret" not in stored
    assert "Work with care" not in stored


def test_another_key_gives_fingerprints_that_share_nothing() -> None:
    other = fingerprint_request(read_request(body()), lambda data: digest(b"other" + data))
    assert not set(other.messages) & set(prints().messages)


def test_fingerprints_survive_storage() -> None:
    found = prints(betas=("b", "a"), tools=[tool("Bash"), tool("Late", defer_loading=True)])
    assert read_fingerprint(json.loads(json.dumps(found.to_fields()))) == found


def test_raw_body_of_telemetry_gives_the_same_fingerprint() -> None:
    assert fingerprint_request(read_raw_body(json.dumps(body())), digest) == prints()
    assert fingerprint_request(read_raw_body(json.dumps(body()).encode()), digest) == prints()


@pytest.mark.parametrize("cut", ['{"model":"m","mess', "[1]", ""])
def test_cut_bodies_are_refused_with_a_sentence(cut: str) -> None:
    with pytest.raises(BodyUnreadable, match="not a whole JSON object"):
        read_raw_body(cut)


def test_server_is_named_from_the_tool() -> None:
    assert [find_server(name) for name in ("mcp__mail__send_all", "Bash", "mcp__")] == ["mail", None, None]


def _lines(request_id: str, tail: list[str], **fields: object) -> list[Entry]:
    """A request, and the response that names it."""
    params = {"model": "m", "betas": ["b"], "output_config": {"effort": "medium"}}
    request = make_entry("api-request", id=request_id, shapeHash="s", params=params, tail=tail, **fields)
    return [request, answer(request_id, usage=use_tokens(), requestRef=request_id)]


def test_hash_lists_are_put_together_from_their_base() -> None:
    shape = {"system": [text("You are.")], "tools": [tool("Bash")]}
    lines = [
        make_entry("api-request-shape", shapeHash="s", shape=shape),
        *_lines("one", ["h0", "h1"], keep=0),
        *_lines("two", ["h2"], base="one", keep=2),
        *_lines("three", ["h9"], base="two", keep=1),
        *_lines("lost", ["h9"], base="nobody", keep=1),
    ]
    found = {name: prints for name, prints, _ in list_requests(lines)}
    hashes = {name: list(each.messages) for name, each in found.items()}
    assert hashes == {"one": ["h0", "h1"], "two": ["h0", "h1", "h2"], "three": ["h0", "h9"], "lost": []}
    assert [each.are_messages_known for each in found.values()] == [True, True, True, False]
    assert diff_fingerprints(found["two"], found["three"]).find_first_index(PromptLevel.MESSAGES) == 1
    assert diff_fingerprints(found["two"], found["lost"]).find_first_index(PromptLevel.MESSAGES) is None
    assert find_diff_causes(found["one"], found["two"]) == ()
    assert found["one"].tools == prints(tools=[tool("Bash")]).tools


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(_JSON, _JSON)
def test_canonical_text_is_equal_only_for_equal_values(one: object, other: object) -> None:
    assert (write_canonical(one) == write_canonical(other)) == (json.dumps(one) == json.dumps(other))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=5), min_size=1, max_size=6), st.integers(0, 5), st.text(max_size=5))
def test_changing_one_message_diverges_at_that_message(words: list[str], place: int, new: str) -> None:
    place %= len(words)
    changed = [*words[:place], new, *words[place + 1 :]]
    expected = None if changed == words else place
    assert diff_fingerprints(prints(*words), prints(*changed)).find_first_index(PromptLevel.MESSAGES) == expected


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(["model", "system", "tools", "messages", "thinking", "cache_control"]), _JSON))
def test_no_body_is_too_odd_to_be_compared(odd: dict[str, object]) -> None:
    request = read_request(odd)
    found = fingerprint_request(request, digest)
    assert find_diff_causes(found, found) == ()
    assert diff_requests(request, request).changes == ()
    assert read_fingerprint(json.loads(json.dumps(found.to_fields()))) == found
    lint_request(request, [read_request(body())])
    find_diff_causes(found, prints())
    diff_requests(request, read_request(body()))


def test_nesting_beyond_the_encoder_is_not_compared() -> None:
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]
    message = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": deep}]}
    assert prints(messages=[message], tools=[{"name": "t", "input_schema": deep}]).messages


def test_stored_rows_of_another_shape_are_left_out() -> None:
    assert (
        read_fingerprint({"tools": [["Bash"]], "system": 3, "markers": [[]], "settings": [["a", "b", "c"]]}).tools == ()
    )
