"""A session that has one of everything the pages of breaks, compactions and contexts show, as lines of a transcript.

Every text can be given: `say` turns a plain word into what is written, so that tests can plant hostile ones everywhere.
"""

from collections.abc import Callable, Sequence

from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.jobs.perform import perform_due
from dashboard.models import AgentSession, Membership, Role, Team, TeamPolicy, User
from tests.builders import make_team, make_user
from tests.dashboard.ingest.conversation import MODEL, Conversation

VERSION = "2.1.325"  # the first whose requests are known
SECTIONS = (
    "Primary Request and Intent",
    "Key Technical Concepts",
    "Files and Code Sections",
    "Errors and Fixes",
    "Problem Solving",
    "All User Messages",
    "Pending Tasks",
    "Current Work",
)
SAID = {"Primary Request and Intent": "The harbour chart is to be drawn."}
Say = Callable[[str], str]


def _plainly(words: str) -> str:
    return words


class RecordedTalk(Conversation):
    """Lines of a client that writes its requests down."""

    def __init__(self, name: str, *, say: Say = _plainly, agent_id: str | None = None) -> None:
        super().__init__(name, agent_id=agent_id)
        self.say = say

    def write(self, line_type: str, **fields: object) -> str:
        told = {"version": self.say(VERSION), "cwd": f"/home/ann/{self.say('harbour')}", "gitBranch": self.say("main")}
        return super().write(line_type, **(told | fields))

    def shape(self, name: str, *, tools: Sequence[tuple[str, str]], system: str) -> None:
        """System prompt and tools (name, description) under a name."""
        listed = [{"name": self.say(tool), "description": self.say(words)} for tool, words in tools]
        blocks = [{"type": "text", "text": self.say(system)}]
        self.stamp("api-request-shape", shapeHash=name, shape={"system": blocks, "tools": listed})

    def request(self, request_id: str, shape: str, *, messages: int) -> None:
        self.stamp(
            "api-request",
            id=request_id,
            shapeHash=shape,
            querySource=self.say("sdk"),
            params={"model": self.say(MODEL), "betas": ["one"]},
            keep=0,
            tail=[f"hash-{number}" for number in range(messages)],
            cacheControl=[{"path": ["system", 0], "value": {"type": "ephemeral"}}],
        )

    def stamp(self, line_type: str, **fields: object) -> None:
        """A line beside the conversation, with a time."""
        at = self.wait(0.1).now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.add({"type": line_type, "sessionId": self.session_id, "timestamp": at, "version": VERSION, **fields})

    def reply(self, message_id: str, *blocks: object, read: int, written: int, ref: str | None = None) -> str:
        usage = {
            "input_tokens": 3,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 40,
        }
        message = {
            "id": message_id,
            "role": "assistant",
            "model": self.say(MODEL),
            "content": list(blocks) or [{"type": "text", "text": self.say("Well.")}],
            "stop_reason": "end_turn",
            "usage": usage,
        }
        named = {} if ref is None else {"requestRef": ref, "promptCacheRequested": "5m"}
        return self.write("assistant", message=message, requestId=f"req_{message_id}", **named)

    def read_file(
        self, use_id: str, path: str, *, at_call: str, read: int, written: int, ref: str | None = None
    ) -> None:
        use = {"type": "tool_use", "id": use_id, "name": "Read", "input": {"file_path": self.say(path)}}
        self.reply(at_call, use, read=read, written=written, ref=ref)
        block = {"type": "tool_result", "tool_use_id": use_id, "content": f"{self.say('depth 12 m')}\n" * 400}
        self.write("user", message={"role": "user", "content": [block]})

    def run_command(self, use_id: str, *, at_call: str, read: int, written: int, ref: str | None = None) -> None:
        use = {"type": "tool_use", "id": use_id, "name": self.say("Bash"), "input": {"command": self.say("make chart")}}
        self.reply(at_call, use, read=read, written=written, ref=ref)
        block = {"type": "tool_result", "tool_use_id": use_id, "content": self.say("no ink"), "is_error": True}
        self.write("user", message={"role": "user", "content": [block]})

    def compact(self, before: int = 167_000, *, summary: str = "", after: int | None = None) -> str:
        """With a file that came back and an attachment of a kind that did not."""
        last = self.parent
        self.parent = None
        told = {"trigger": self.say("auto"), "preTokens": before, "durationMs": 56_000}
        told |= {} if after is None else {"postTokens": after}
        boundary = self.write(
            "system", subtype="compact_boundary", logicalParentUuid=last, content="Compacted", compactMetadata=told
        )
        self.write("user", isCompactSummary=True, message={"role": "user", "content": summary or self.write_summary()})
        path = self.say("/home/ann/chart.py")
        self.write("attachment", attachment={"type": "file", "filename": path, "content": self.say("depth 12 m")})
        return boundary

    def write_summary(self) -> str:
        """Eight of the nine sections."""
        bodies = [self.say(SAID.get(name, name)) for name in SECTIONS]
        told = "\n\n".join(f"{number}. {SECTIONS[number - 1]}:\n   {body}" for number, body in enumerate(bodies, 1))
        return f"{self.say('This session is continued.')}\n\nSummary:\n{told}"


def write_recorded_talk(name: str = "recorded", *, say: Say = _plainly) -> RecordedTalk:
    """Three calls, a break by changed tools, a file read twice, a compaction with what came back, one call after it."""
    talk = RecordedTalk(name, say=say)
    talk.note("summary", summary=say("Charts of the harbour"), leafUuid="none")
    talk.shape("shape-1", tools=[("Bash", "Run a command."), ("Read", "Read a file.")], system="Be careful.")
    talk.ask(say("Never touch the lighthouse module. Draw the harbour chart."))
    talk.request("r1", "shape-1", messages=1)
    talk.read_file("toolu_1", "/home/ann/chart.py", at_call=f"{name}-1", read=0, written=50_000, ref="r1")
    talk.request("r2", "shape-1", messages=3)
    talk.read_file("toolu_2", "/home/ann/chart.py", at_call=f"{name}-2", read=50_000, written=2_000, ref="r2")
    tools = [("Bash", "Run a command quickly."), ("Read", "Read a file."), ("mcp__jira__search", "Search issues.")]
    talk.shape("shape-2", tools=tools, system="Be careful.")
    talk.request("r3", "shape-2", messages=5)
    talk.reply(f"{name}-3", read=0, written=55_000, ref="r3")
    talk.write("attachment", attachment={"type": say("date"), "date": say("today")})
    talk.compact()
    talk.ask(say("Go on."))
    talk.request("r4", "shape-2", messages=2)
    talk.run_command("toolu_3", at_call=f"{name}-4", read=10_000, written=20_000, ref="r4")
    return talk


def record_talk(team: Team, owner: User, talk: Conversation, *, stores_content: bool = True) -> AgentSession:
    """Takes the lines in under a policy that keeps content or not, and lets the audit run."""
    version = TeamPolicy.objects.filter(team=team).count() + 1
    TeamPolicy.objects.create(team=team, version=version, stores_content=stores_content)
    take_in(Origin(team, owner, "import"), Piece(talk.data, "talk", talk.session_id, talk.agent_id))
    perform_due()
    return AgentSession.objects.get(team=team, external_id=talk.session_id)


def make_harbour() -> Team:
    """Alice owns the sessions; Vera sees numbers, Gina was granted content; Charlie belongs to another team."""
    team = make_team("Harbour", owner="alice", viewer="vera")
    Membership.objects.create(team=team, user=make_user("gina"), role=Role.VIEWER, content_grant=True)
    make_team("Marina", owner="charlie")
    return team
