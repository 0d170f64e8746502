"""Clients that do not name their session: which requests are one conversation, and which only look like it."""

from typing import Any

from dashboard.ingest.observed import Rules
from dashboard.proxy.conversations import Conversations
from dashboard.proxy.reports import Reporter
from tests.dashboard.proxy.talking import Client

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


def test_it_stays_one_session_over_a_restart_of_the_recorder() -> None:
    client = plain_client()
    names = {name(Reporter(), client, f"Question {number}", f"msg_{number}", f"Answer {number}") for number in range(5)}
    assert len(names) == 1


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
        known.find("scope", [], [{"type": "text", "text": f"{LONG} {number}"}])
    assert max(len(known._names), len(known._tips), len(known._answers)) == 10
