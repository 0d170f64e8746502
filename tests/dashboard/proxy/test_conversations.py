"""Clients that do not name their session: which requests are one conversation, and which only look like it."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.prompt.request import PromptMessage
from compaction.timeline.observations import LineKind
from dashboard.ingest.observed import Rules
from dashboard.proxy.conversation_owners import Kin, StoredSession
from dashboard.proxy.conversations import AGAIN_SECONDS, Asked, Conversations
from dashboard.proxy.reports import Reporter
from dashboard.proxy.wire import Ending
from tests.dashboard.proxy.talking import MCP, READ, Client, make_usage, stream_answer, write_events
from tests.fakes.native_compaction import list_block_events, sign_block

RULES = Rules(keeps_content=False, digest_key=b"k" * 32)
LONG = "The harbour is twelve metres deep at the quay, and nine where the sand bank begins. Mind the tide."


def plain_client(**values: Any) -> Client:
    return Client(headers={}, **values)


def name(reporter: Reporter, client: Client, words: str, message_id: str, reply: str = "Well then.") -> str:
    report = reporter.read(client.call(words, message_id, reply=reply), RULES)
    assert report is not None
    return report.session_id


def test_a_growing_conversation_is_one_session() -> None:
    reporter, client = Reporter(), plain_client()
    names = {name(reporter, client, f"Question {number}", f"msg_{number}", f"Answer {number}") for number in range(8)}
    assert len(names) == 1


@dataclass
class Shelf:
    """What is written down: it outlives the recorder."""

    shapes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    calls: set[tuple[str, str]] = field(default_factory=set)

    def start(self) -> Conversations:
        return Conversations(self.look_up)

    def look_up(self, _team_pk: int, names: Sequence[str], call_id: str) -> dict[str, StoredSession]:
        stored = [name for name in names if name in self.shapes]
        return {name: StoredSession(frozenset(self.shapes[name]), (name, call_id) in self.calls) for name in stored}

    def find(self, known: Conversations, asked: Asked, answer: str) -> str:
        session_id = known.find(asked, [{"type": "text", "text": answer}])
        self.shapes[session_id].add(asked.kin.shape)
        self.calls.add((session_id, asked.call_id))
        return session_id


def ask(words: Sequence[str], *, system: str = "You sail.", call_id: str = "") -> Asked:
    """Questions and answers in turn."""
    roles = ("user", "assistant")
    messages = [PromptMessage(roles[n % 2], ({"type": "text", "text": each},)) for n, each in enumerate(words)]
    return Asked("scope", messages, Kin(system, "m", system.encode()), call_id=call_id or f"{system} {words}")


def test_conversations_that_begin_with_the_same_words_are_kept_apart_by_their_answers() -> None:
    reporter = Reporter()
    clients = [plain_client() for _ in range(50)]
    first = [name(reporter, each, "Hello", f"a{n}", f"Answer number {n}") for n, each in enumerate(clients)]
    second = [name(reporter, each, "And then?", f"b{n}") for n, each in enumerate(clients)]
    assert len(set(first)) == 50
    assert first == second


def test_even_the_same_answer_to_the_same_words_makes_two_sessions() -> None:
    reporter = Reporter()
    clients = [plain_client() for _ in range(20)]
    first = [name(reporter, each, "Yes or no?", f"a{n}", "Yes") for n, each in enumerate(clients)]
    second = [name(reporter, each, f"Why {n}?", f"b{n}", f"Because {n}") for n, each in enumerate(clients)]
    third = [name(reporter, each, "Go on", f"c{n}") for n, each in enumerate(clients)]
    assert len(set(first)) == 20
    assert sorted(second) == sorted(first)  # each is continued once, whichever it was
    assert third == second


def test_nobody_continues_the_conversation_of_another_key_or_user() -> None:
    reporter = Reporter()
    names = set()
    for key_pk, user in ((1, "ann"), (2, "ann"), (1, "bob")):
        client = plain_client(extra={"metadata": {"user_id": user}})
        report = reporter.read(client.call("Hello", "msg", key_pk=key_pk), RULES)
        assert report is not None
        names.add(report.session_id)
    assert len(names) == 3


def test_a_client_that_drops_old_messages_stays_in_its_session() -> None:
    reporter, client = Reporter(), plain_client()
    first = name(reporter, client, "Hello", "msg_1", LONG)
    client.messages = client.messages[1:]  # a sliding window
    client.messages.insert(0, {"role": "user", "content": "(earlier messages left out)"})
    assert name(reporter, client, "Go on", "msg_2") == first


def test_thinking_that_is_not_sent_back_changes_nothing() -> None:
    reporter, client = Reporter(), plain_client()
    first = name(reporter, client, "Hello", "msg_1", "Short")
    client.messages[-1]["content"] = "Short"  # as a string in place of a list of blocks
    assert name(reporter, client, "Go on", "msg_2", "More") == first


def test_memory_is_bounded() -> None:
    known = Conversations(most_remembered=10)
    for number in range(100):
        known.find(ask(["Hello"]), [{"type": "text", "text": f"{LONG} {number}"}])
    for _ in range(100):
        known.find(ask(["Hello"]), [{"type": "text", "text": "Yes"}])
    sizes = [len(each) for each in (known._said, known._asked, known._answers)]
    assert max(*sizes, len(known._numbers), len(known._cut)) == 10
    assert max(len(owners) for owners in known._said._known.values()) == 50


# --- openings that many share ---

EXAMPLES = [
    {"role": "user", "content": "Classify: good boat"},
    {"role": "assistant", "content": "positive"},
    {"role": "user", "content": "Classify: bad boat"},
    {"role": "assistant", "content": "negative"},
]


@pytest.mark.parametrize("length", [2, 4])
def test_calls_that_share_their_examples_or_a_greeting_are_conversations_of_their_own(length: int) -> None:
    reporter = Reporter()
    clients = [plain_client(messages=[dict(each) for each in EXAMPLES[:length]]) for _ in range(5)]
    first = [name(reporter, each, f"Item {n}", f"a{n}", "fine") for n, each in enumerate(clients)]
    second = [name(reporter, each, "And then?", f"b{n}", "fine") for n, each in enumerate(clients)]
    third = [name(reporter, each, "Go on", f"c{n}") for n, each in enumerate(clients)]
    assert len(set(first)) == 5
    assert first == second == third


def test_an_example_that_was_an_answer_once_makes_no_conversations_one() -> None:
    reporter = Reporter()
    for n, words in enumerate(("good boat", "bad boat")):
        name(reporter, plain_client(), f"Classify: {words}", f"e{n}", EXAMPLES[2 * n + 1]["content"])
    clients = [plain_client(messages=[dict(each) for each in EXAMPLES]) for _ in range(5)]
    names = [name(reporter, each, f"Item {n}", f"a{n}") for n, each in enumerate(clients)]
    assert len(set(names)) == 5  # the first of them is taken for a step of the example's own conversation


def test_answers_that_a_client_sends_back_changed_do_not_cut_its_conversation() -> None:
    reporter, client = Reporter(), plain_client()
    names = set()
    for number in range(5):
        names.add(name(reporter, client, f"Question {number}", f"m{number}", f"<b>Answer {number}</b>"))
        client.messages[-1]["content"] = f"Answer {number}"
    assert len(names) == 1


def test_an_answer_that_was_begun_by_the_client_stays_in_its_conversation() -> None:
    reporter, client, names = Reporter(), plain_client(), set()
    for number in range(3):
        client.messages += [{"role": "user", "content": f"Question {number}"}, {"role": "assistant", "content": "{"}]
        report = reporter.read(
            client.send(write_events(stream_answer(f"m{number}", make_usage(), words="1}")), "m"), RULES
        )
        assert report is not None
        names.add(report.session_id)
        client.messages[-1]["content"] = "{1}"
    assert len(names) == 1


# --- agents that differ beside their messages ---


@pytest.mark.parametrize("values", [{"system": "You row."}, {"tools": [READ, MCP]}, {"model": "claude-haiku-4-5"}])
def test_agents_that_were_told_the_same_are_told_apart(values: dict[str, Any]) -> None:
    reporter, one, other = Reporter(), plain_client(), plain_client(**values)
    first = [name(reporter, each, "Start", f"a{n}", "Ready.") for n, each in enumerate((one, other))]
    second = [name(reporter, each, "Go", f"b{n}") for n, each in enumerate((other, one))]
    assert len(set(first)) == 2
    assert second == first[::-1]


@pytest.mark.parametrize("values", [{"system": "You row."}, {"tools": [READ, MCP]}, {"model": "claude-haiku-4-5"}])
def test_a_conversation_may_change_its_ways(values: dict[str, Any]) -> None:
    reporter, client = Reporter(), plain_client()
    first = name(reporter, client, "Start", "a", "Ready.")
    for key, value in values.items():
        setattr(client, key, value)
    assert name(reporter, client, "Go", "b") == first


def test_which_of_two_changed_its_ways_is_told_by_what_it_kept() -> None:
    reporter, one, other = Reporter(), plain_client(), plain_client(system="You row.")
    first = [name(reporter, each, "Start", f"a{n}", "Ready.") for n, each in enumerate((one, other))]
    one.tools = [READ, MCP]
    assert name(reporter, one, "Go", "b") == first[0]
    other.model, other.system = "claude-haiku-4-5", "You drift."
    assert name(reporter, other, "Go", "c") == first[1]  # the last that could


def test_an_answer_handed_on_to_another_agent_begins_a_conversation() -> None:
    reporter, writer = Reporter(), plain_client(system="Writer")
    first = name(reporter, writer, "Write", "a", LONG)
    given = [{"role": "user", "content": "Criticise:"}, {"role": "assistant", "content": LONG}]
    critic = plain_client(system="Critic", messages=given)
    assert name(reporter, critic, "Go", "b", "Meh") != first
    assert name(reporter, writer, "More", "c") == first


def test_an_answer_that_two_were_given_does_not_tell_which_it_was() -> None:
    reporter, clients = Reporter(), [plain_client(), plain_client()]
    first = [name(reporter, each, f"Question {n}", f"a{n}", LONG) for n, each in enumerate(clients)]
    clients[0].messages[0]["content"] = "(left out)"
    assert name(reporter, clients[0], "Go on", "b") not in first


# --- compacted by the API ---


def compact(client: Client, *, is_streamed: bool) -> dict[str, Any]:
    """What is sent in answer to a request for compaction."""
    block = sign_block("We said hello.")
    message = {"id": "c", "type": "message", "role": "assistant", "model": client.model, "usage": make_usage(read=9)}
    end = {"stop_reason": "compaction"}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": []}},
        *list_block_events(block),
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 0}},
        {"type": "message_stop"},
    ]
    whole = json.dumps({**message, "content": [block], **end}).encode()
    kind = "text/event-stream" if is_streamed else "application/json"
    return {"answer": write_events(events) if is_streamed else whole, "response_headers": {"content-type": kind}}


@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_conversation_goes_on_behind_what_the_api_compacted(*, is_streamed: bool) -> None:
    reporter, client = Reporter(), plain_client()
    first = name(reporter, client, "Hello", "a", "Aye")
    client.extra = {"compaction": {"type": "summarize"}}
    report = reporter.read(client.send(message_id="c", **compact(client, is_streamed=is_streamed)), RULES)
    assert report is not None
    assert report.session_id == first
    assert [line.fact.kind for line in report.lines if line.fact.response] == [LineKind.OTHER]
    client.extra, client.system = {}, "You row."
    client.messages = [{"role": "assistant", "content": [sign_block("We said hello.")]}]
    assert name(reporter, client, "Go on", "d", "Aye") == first
    assert name(reporter, client, "And then?", "e", "Aye") == first


def test_compacting_does_not_use_up_a_conversation_that_another_began_alike() -> None:
    reporter, clients = Reporter(), [plain_client(), plain_client()]
    first = [name(reporter, each, "Hello", f"a{n}", "Aye") for n, each in enumerate(clients)]
    clients[0].extra = {"compaction": {"type": "summarize"}}
    reporter.read(clients[0].send(message_id="c", **compact(clients[0], is_streamed=True)), RULES)
    clients[0].extra = {}
    assert {name(reporter, each, f"Go {n}", f"b{n}") for n, each in enumerate(clients)} == set(first)


# --- asked again ---


def cut(client: Client, words: str, message_id: str) -> Any:
    events = stream_answer(message_id, make_usage(written=10), words="Half of it")[:4]
    exchange = client.call(words, message_id, events=events, ending=Ending.CLIENT_LEFT)
    client.messages = client.messages[:-2]
    return exchange


def test_a_first_turn_that_was_cut_and_asked_again_is_one_session() -> None:
    reporter, client = Reporter(), plain_client()
    reports = [reporter.read(cut(client, "Hello", f"a{number}"), RULES) for number in range(2)]
    names = {report.session_id for report in reports if report}
    names.add(name(reporter, client, "Hello", "b", "Whole"))
    names.add(name(reporter, client, "Go on", "c"))
    assert len(names) == 1


@pytest.mark.parametrize(
    ("seconds", "values"),
    [(AGAIN_SECONDS, {}), (-22, {}), (0, {"system": "You row."}), (0, {"model": "claude-opus-5"})],
)
def test_what_is_asked_much_later_or_meanwhile_or_by_another_is_not_asked_again(
    seconds: float, values: dict[str, Any]
) -> None:
    reporter, client = Reporter(), plain_client()
    report = reporter.read(cut(client, "Hello", "a"), RULES)
    other = plain_client(now=client.now + seconds, **values)
    assert report is not None
    assert name(reporter, other, "Hello", "b") != report.session_id


def test_a_turn_asked_again_stays_apart_from_one_that_began_alike() -> None:
    reporter, clients = Reporter(), [plain_client(), plain_client()]
    first = [name(reporter, each, "Hello", f"a{n}", "Aye") for n, each in enumerate(clients)]
    report = reporter.read(cut(clients[0], "Why?", "b"), RULES)
    assert report is not None
    assert name(reporter, clients[0], "Why?", "c") == report.session_id
    assert name(reporter, clients[1], "How?", "d") in {*first} - {report.session_id}


# --- after a restart of the recorder ---


def test_it_stays_one_session_over_a_restart_of_the_recorder() -> None:
    shelf, words, names = Shelf(), ["Question"], set()
    for number in range(5):
        names.add(shelf.find(shelf.start(), ask(words), f"Answer {number}"))
        words += [f"Answer {number}", "Go on"]
    assert len(names) == 1


def test_a_conversation_that_began_with_examples_stays_one_session_too() -> None:
    shelf, known, names = Shelf(), Conversations(), []
    for item in ("boat", "ship"):
        words = ["Example", "positive", item]
        names.append(shelf.find(known, ask(words), "fine"))
        names.append(shelf.find(shelf.start(), ask([*words, "fine", "Why?"]), "so"))
    assert [names[0], names[2]] == [names[1], names[3]]
    assert names[0] != names[2]


def test_after_a_restart_agents_are_told_apart_too() -> None:
    shelf, known, systems = Shelf(), Conversations(), ("You sail.", "You row.")
    first = [shelf.find(known, ask(["Start"], system=each), "Ready.") for each in systems]
    known = shelf.start()
    second = [shelf.find(known, ask(["Start", "Ready.", "Go"], system=each), "Aye") for each in systems[::-1]]
    assert second == first[::-1]
    assert shelf.find(shelf.start(), ask(["Start", "Ready.", "Go"], system="You drift."), "Aye") not in first


def test_a_new_conversation_takes_no_name_that_is_stored_unless_its_call_is_told_again() -> None:
    shelf = Shelf()
    names = [shelf.find(shelf.start(), ask(["Hello"], call_id=f"m{number}"), "Aye") for number in range(30)]
    assert len(set(names)) == 30
    assert shelf.find(shelf.start(), ask(["Hello"], call_id="m25"), "Aye") == names[25]


def test_a_stored_name_says_more_than_the_same_question_asked_meanwhile() -> None:
    shelf, words = Shelf(), ["Hello", "Aye", "Why?"]
    first = shelf.find(shelf.start(), ask(words[:1]), "Aye")
    known = shelf.start()
    assert shelf.find(known, ask(words[:1], call_id="another"), "No") != first
    assert shelf.find(known, ask(words), "So") == first


def test_two_that_were_word_for_word_the_same_are_rather_cut_than_made_one() -> None:
    shelf, known = Shelf(), Conversations()
    first = [shelf.find(known, ask(["Hello"], call_id=each), "Aye") for each in "ab"]
    known = shelf.start()
    second = [shelf.find(known, ask(["Hello", "Aye", each]), "Aye") for each in "ab"]
    assert len({*first, *second}) == 4


# --- any conversations ---

SYSTEMS, OPENINGS = ("You sail.", "You row."), ((), ("Begin", "Ready."), ("Begin", "Ready.", "Example", "fine"))
QUESTIONS, ANSWERS = ("Hello", "Why?", "Go on"), ("Aye", "Ready.", LONG)
TALKS = st.tuples(
    st.sampled_from(SYSTEMS),
    st.sampled_from(OPENINGS),
    st.lists(st.tuples(st.sampled_from(QUESTIONS), st.sampled_from(ANSWERS)), min_size=1, max_size=5),
)
Talk = tuple[str, tuple[str, ...], list[tuple[str, str]]]


def list_requests(talk: Talk) -> list[tuple[str, ...]]:
    """Each begins with the system prompt."""
    system, opening, turns = talk
    said = [(*opening, *(words for turn in turns[:number] for words in turn)) for number in range(len(turns))]
    return [(system, *before, turns[number][0]) for number, before in enumerate(said)]


def take_beginning(talk: Talk) -> tuple[str, ...]:
    return (*list_requests(talk)[0], talk[2][0][1])


def place_calls(talks: Sequence[Talk], order: Sequence[int], restarts: Sequence[bool] = ()) -> list[list[str]]:
    """The sessions of each conversation's calls. `order` says whose turn it is, `restarts` before which calls."""
    shelf, placed = Shelf(), [list[str]() for _ in talks]
    known = shelf.start()
    turns = [number for number in order if number < len(talks)] + [n for n in range(len(talks)) for _ in range(5)]
    for place, number in enumerate(turns):
        requests, done = list_requests(talks[number]), len(placed[number])
        if done == len(requests):
            continue
        if place < len(restarts) and restarts[place]:
            known = shelf.start()
        system, *words = requests[done]
        asked = ask(words, system=system, call_id=f"{number}-{done}")
        placed[number].append(shelf.find(known, asked, talks[number][2][done][1]))
    return placed


@given(st.lists(TALKS, min_size=1, max_size=6), st.lists(st.integers(0, 5), max_size=30))
def test_every_conversation_keeps_its_session_and_no_two_share_one(talks: list[Talk], order: list[int]) -> None:
    """Calls that two conversations made word for word alike, with the same system prompt, tools and model, cannot be
    told apart: from such a call each may go on in the session of the other. From its first own request on it stays."""
    placed = place_calls(talks, order)
    counted = Counter(request for talk in talks for request in list_requests(talk))
    own = [
        {session for session, request in zip(sessions, list_requests(talk), strict=True) if counted[request] == 1}
        for sessions, talk in zip(placed, talks, strict=True)
    ]
    assert max(map(len, own)) <= 1
    assert sum(map(len, own)) == len(set().union(*own))
    assert len({session for sessions in placed for session in sessions}) == len(talks)


@given(
    st.lists(TALKS, min_size=1, max_size=6, unique_by=take_beginning),
    st.lists(st.integers(0, 5), max_size=30),
    st.lists(st.booleans(), max_size=30),
)
def test_over_restarts_too_unless_they_began_word_for_word_alike(
    talks: list[Talk], order: list[int], restarts: list[bool]
) -> None:
    placed = [set(sessions) for sessions in place_calls(talks, order, restarts)]
    assert max(map(len, placed)) == 1
    assert len(set().union(*placed)) == len(talks)
