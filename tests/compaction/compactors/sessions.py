"""Working sessions for tests: files read, written and edited, commands run, todos kept, in the client's shapes."""

from dataclasses import dataclass

from hypothesis import strategies as st

from compaction.transcripts.entries import Entry
from tests.compaction.compactors.talks import Talk
from tests.compaction.making import request, result, text

ROOT = "/home/dev/shop"


@dataclass
class Session(Talk):
    """A conversation in which work is done; each step is one response with its result."""

    def do(self, name: str, answer: object = "done", *, details: object = None, **arguments: object) -> Entry:
        """One tool request and what it was answered; `is_error` belongs to the answer."""
        number = len(self.entries)
        is_error = bool(arguments.pop("is_error", False))
        self.answer(f"msg-{number}", request(f"use-{number}", name, **arguments))
        fields = {} if details is None else {"toolUseResult": details}
        return self.say([result(f"use-{number}", answer, is_error=is_error)], **fields)

    def read(self, path: str, content: str, **arguments: object) -> Entry:
        """A file read whole."""
        lines = content.split("\n")
        numbered = "\n".join(f"{number:6}→{line}" for number, line in enumerate(lines, start=1))
        return self.do("Read", numbered, file_path=path, **arguments)

    def write(self, path: str, content: str) -> Entry:
        return self.do("Write", f"File created successfully at: {path}", file_path=path, content=content)

    def edit(self, path: str, old: str, new: str, **arguments: object) -> Entry:
        return self.do("Edit", "The file was updated.", file_path=path, old_string=old, new_string=new, **arguments)

    def run(self, command: str, output: str = "", **arguments: object) -> Entry:
        return self.do("Bash", output, command=command, **arguments)

    def remark(self, words: str) -> Entry:
        return self.answer(f"msg-{len(self.entries)}", text(words))

    def attach_fields(self, kind: str, **fields: object) -> Entry:
        return self.add("attachment", attachment={"type": kind, **fields})


def make_session() -> Session:
    """A small piece of real work: a request with limits, an error and its fix, todos, a commit, an open end."""
    session = Session()
    session.say("Fix the login bug in auth.py. Never touch the schema, and always run `make test` before you commit.")
    session.do("TodoWrite", todos=[
        {"content": "Guard against an empty token", "status": "in_progress"},
        {"content": "Update the README", "status": "pending"},
        {"content": "Find the bug", "status": "completed"},
    ])  # fmt: skip
    session.read(f"{ROOT}/auth.py", "def check(token):\n    return token.user\n")
    session.remark("I see the issue: `check` does not handle a missing token, because `token.user` fails on None.")
    session.edit(f"{ROOT}/auth.py", "return token.user", "return token.user if token else None")
    session.write(f"{ROOT}/test_auth.py", "def test_empty_token():\n    assert check(None) is None\n")
    session.run("make test 2>&1 | tail -20", "E   AttributeError: 'NoneType' object has no attribute 'user'\n1 failed")
    session.remark("The guard is in the wrong place: the caller reads the user first.")
    session.edit(f"{ROOT}/login.py", "user = token.user", "user = check(token)")
    session.run("make test 2>&1 | tail -20", "2 passed")
    session.run("git add -A && git commit -m 'Guard the token'", "[main 1a2b3c4] Guard the token\n 3 files changed")
    session.say("Good. Also log it, but do not use print.")
    session.remark("Now let me add the log line:")
    session.edit(f"{ROOT}/auth.py", "return token.user if", "log.info('no token')\n    return token.user if")
    return session


_PATHS = st.sampled_from(
    [f"{ROOT}/a.py", f"{ROOT}/b/c.ts", f"{ROOT}/CLAUDE.md", "/etc/passwd", f"{ROOT}/s-1.jsonl", "x"]
)
_TEXTS = st.sampled_from(
    ["", "one line", "def work():\n    pass\n" * 40, "z" * 30_000, "1. Current Work:\n</summary>", "żółw 🐢"]
)


@st.composite
def sessions(draw: st.DrawFn, most_steps: int = 14) -> list[Entry]:
    """Sessions with anything a tool may bring, well formed or not."""
    session = Session()
    session.say(draw(_TEXTS.filter(bool)))
    for _ in range(draw(st.integers(0, most_steps))):
        _take_step(draw, session)
    return session.entries


def _take_step(draw: st.DrawFn, session: Session) -> None:
    path, words = draw(_PATHS), draw(_TEXTS)
    match draw(st.integers(0, 9)):
        case 0:
            session.read(path, words)
        case 1:
            session.write(path, words)
        case 2:
            session.edit(path, draw(_TEXTS), words)
        case 3:
            session.run(words, draw(_TEXTS), is_error=draw(st.booleans()))
        case 4:
            session.do(
                "TodoWrite", todos=[{"content": words, "status": draw(st.sampled_from(["pending", "completed"]))}]
            )
        case 5:
            session.say(words or "go on")
        case 6:
            session.attach_fields(
                "mcp_instructions_delta", addedNames=[words[:20]], addedBlocks=[words], removedNames=[]
            )
        case 7:
            session.say(f"Base directory for this skill: /skills/{words[:9]}\n\n{words}", isMeta=True)
        case 8:
            session.attach_fields("deferred_tools_delta", addedNames=[words[:12] or "Tool"], addedLines=[words])
        case _:
            session.remark(words or "Done.")
