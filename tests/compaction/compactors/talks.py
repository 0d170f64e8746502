"""Conversations for tests: linked lines in the client's shapes, by hand or drawn at random."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from compaction.transcripts.entries import Entry
from tests.compaction.making import make_entry, request, result, text, thought

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}


@dataclass
class Talk:
    """A conversation under construction; every line hangs under the one before it."""

    name: str = "t"
    entries: list[Entry] = field(default_factory=list)
    started_at: datetime = NOW - timedelta(minutes=30)

    def add(self, line_type: str, **fields: object) -> Entry:
        number = len(self.entries)
        at = self.started_at + timedelta(seconds=number)
        line = {
            "parentUuid": self.entries[-1].uuid if self.entries else None,
            "isSidechain": False,
            "uuid": f"{self.name}-{number:04}",
            "sessionId": "s-1",
            "version": "2.1.325",
            "cwd": "/home/dev/shop",
            "gitBranch": "main",
            "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        entry = make_entry(line_type, **(line | fields))
        self.entries.append(entry)
        return entry

    def say(self, content: object, **fields: object) -> Entry:
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def answer(self, message_id: str, *blocks: object, tokens: int = 1_000, **fields: object) -> Entry:
        message = {
            "id": message_id,
            "role": "assistant",
            "model": "claude-opus-4-5",
            "content": list(blocks),
            "usage": {"input_tokens": tokens, "output_tokens": 5},
            "stop_reason": None,
        }
        return self.add("assistant", message=message, **fields)

    def use_tool(self, message_id: str, tool_id: str, content: object = "done", *, name: str = "Read") -> None:
        self.answer(message_id, request(tool_id, name, path=f"/src/{tool_id}.py"))
        self.say([result(tool_id, content)])

    def attach(self, kind: str, words: str) -> Entry:
        return self.add("attachment", attachment={"type": kind, "content": words})

    def bound(self, words: str = "1. Primary Request and Intent: before", **metadata: object) -> None:
        last = self.entries[-1].uuid if self.entries else None
        self.add(
            "system",
            subtype="compact_boundary",
            content="Conversation compacted",
            parentUuid=None,
            logicalParentUuid=last,
            compactMetadata={"trigger": "auto", "preTokens": 100_000, **metadata},
        )
        self.say(words, isCompactSummary=True, isVisibleInTranscriptOnly=True)


def make_talk(rounds: int = 6, *, size: int = 400) -> list[Entry]:
    """A plain conversation: a prompt, then rounds with one tool each and a result of this many characters."""
    talk = Talk()
    talk.say("Fix the login bug, and never touch the schema.")
    for number in range(rounds):
        talk.use_tool(f"m{number}", f"tool{number}", "x" * size)
    talk.answer("m-last", text("The bug was in the token check."))
    talk.say("Now add a test for it.")
    return talk.entries


_WORDS = st.sampled_from(["look here", "no, the other file", "always use bun", "run it again", "żółw 🐢", "a" * 900])
_STEPS = st.sampled_from(
    ["prompt", "text", "tool", "parallel", "late", "attachment", "progress", "image", "meta", "torn"]
)


@st.composite
def talks(draw: st.DrawFn, fewest_steps: int = 1) -> list[Entry]:
    """Conversations with parallel tools, interleaved and late results, attachments, images, and old boundaries."""
    talk = Talk()
    talk.say(draw(_WORDS))
    open_tools: list[str] = []
    for number, step in enumerate(draw(st.lists(_STEPS, min_size=fewest_steps, max_size=14))):
        _take_step(draw, talk, step, number, open_tools)
        if draw(st.integers(0, 9)) == 0 and not open_tools:
            talk.bound()
            talk.say(draw(_WORDS))
    return talk.entries


def _take_step(draw: st.DrawFn, talk: Talk, step: str, number: int, open_tools: list[str]) -> None:
    message_id, words = f"m{number}", draw(_WORDS)
    match step:
        case "prompt":
            talk.say(words)
        case "text":
            talk.answer(message_id, thought("hm"), text(words))
            talk.answer(message_id, text(words + " and more"))
        case "tool":
            talk.use_tool(message_id, f"tool{number}", words)
        case "parallel":
            _use_in_parallel(draw, talk, number, words)
        case "late":
            talk.answer(message_id, request(f"late{number}", "Task", prompt=words))
            open_tools.append(f"late{number}")
        case "torn":
            talk.answer(message_id, text(words))
            talk.use_tool(f"{message_id}-other", f"tool{number}", words)
            talk.answer(message_id, text(words + " and more"))
        case "image":
            talk.say([text(words), IMAGE, DOCUMENT])
        case _:
            _note(talk, step, words)
    if open_tools and step != "late" and draw(st.booleans()):
        talk.say([result(open_tools.pop(), words)])


def _use_in_parallel(draw: st.DrawFn, talk: Talk, number: int, words: str) -> None:
    """Two or three requests of one response; some results come between them, the others behind."""
    waiting = []
    for each in range(draw(st.integers(2, 3))):
        tool = f"tool{number}-{each}"
        talk.answer(f"m{number}", request(tool, "Bash", command=words))
        if draw(st.booleans()):
            talk.say([result(tool, words)])
        else:
            waiting.append(tool)
    for tool in waiting:
        talk.say([result(tool, words)])


def _note(talk: Talk, step: str, words: str) -> None:
    if step == "attachment":
        talk.attach("todo_reminder", words)
    elif step == "progress":
        talk.add("progress", data={"type": "bash_progress"}, toolUseID="p1")
    else:
        talk.say(words, isMeta=True)
