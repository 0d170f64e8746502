"""An invented codebase to talk about: a ferry line's booking desk, its tide board and its books. No real text."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from compaction.transcripts.titles import cut_title

CHARACTERS_PER_TOKEN = 3.6  # of code, as the estimate of the engine counts it
LONGEST_TEXT = 84_000


@dataclass(frozen=True, slots=True)
class Project:
    """One repository: where it lies, its branch, files, the things it is about and what people ask for."""

    name: str
    branch: str
    files: tuple[str, ...]
    things: tuple[str, ...]
    wishes: tuple[str, ...]

    @property
    def folder(self) -> str:
        return f"/home/dev/{self.name}"

    def get_path(self, file: str) -> str:
        return f"{self.folder}/{file}"


BOOKING = Project(
    "quayside-booking",
    "feature/group-fares",
    ("booking/fares.py", "booking/seats.py", "booking/vouchers.py", "booking/refunds.py", "api/checkout.py",
     "tests/test_fares.py", "tests/test_refunds.py", "docs/fares.md"),
    ("fare", "berth", "voucher", "passenger", "sailing", "refund"),
    (
        "Group fares: parties of ten or more get the ninth berth free. Start with booking/fares.py and the tests.",
        "Refunds of cancelled sailings take the voucher into account twice. Find out where.",
        "The checkout answers 500 when a party changes from nine to ten. Reproduce it in a test first.",
        "Round every fare to five cents at the end, not at each step, and say what changes in the snapshots.",
        "Give the seat map a cache that forgets a deck when somebody books on it.",
        "Never change the public fields of the fare API. Rename the inner ones as the glossary has them.",
        "Children under four sail free but need a berth. Today they get neither.",
        "Move the voucher rules out of the checkout into their own module, without a change of behaviour.",
        "Fast lane passengers board first: add the flag to the sailing and to the boarding list.",
        "Upgrade the date library; the tests of the winter timetable will show what moved.",
        "Why do two clerks see different prices for the same sailing? Start from the support ticket.",
        "Show the refund before somebody cancels, with what is kept back and why.",
        "Let a party change its names until an hour before the sailing.",
        "Remove the old seat map API: nobody has called it since spring, check the logs in docs.",
        "The invoice of a group shows the leader's fare ten times. One line per passenger.",
        "Write the booking of a return trip in one transaction; half of one was sold yesterday.",
        "Make the tests of the vouchers quick: they build a whole season for every case.",
        "Check the fares of the night ferry against the printed table in docs/fares.md.",
        "Tell the desk when the last berth of a deck is gone, without asking every second.",
    ),
)  # fmt: skip
TIDES = Project(
    "tideboard",
    "main",
    ("src/board/Departures.tsx", "src/board/useTides.ts", "src/map/Harbour.tsx", "src/map/layers.ts",
     "src/api/client.ts", "test/departures.test.ts", "README.md"),
    ("departure", "tide", "berth", "layer", "gauge", "delay"),
    (
        "The departures board flickers when the tide feed reconnects. Keep the old rows until the new ones are there.",
        "Draw the harbour map without the layer library; it is half of the bundle.",
        "Screen readers hear every delay twice. One live region, polite.",
        "The board shows yesterday's tides after midnight in Lisbon. Look for local dates.",
        "Write a test that fails when two feeds deliver the same departure.",
        "Show the height of the tide beside each berth, in metres with one digit.",
        "The gauge names are English on the Portuguese board. Take them from the catalogue.",
        "Harbour map on phones: the layers menu covers the map. Try it at 360 pixels.",
        "Replace the polling of departures by the event stream, and fall back when it is refused.",
        "Colour alone tells cancelled from delayed. Add a word.",
        "Cache the map tiles for a week, but never the weather.",
        "The board of the night shift shall dim itself after sunset.",
        "Find out why the first paint takes four seconds on the kiosk.",
        "Draw delays as a small line over the day, without a chart library.",
        "Count how often the tide feed reconnects, and show it on the status page.",
    ),
)  # fmt: skip
BOOKS = Project(
    "ledger-sync",
    "fix/day-close",
    ("cmd/close/main.go", "internal/ledger/post.go", "internal/ledger/day.go", "internal/bank/import.go",
     "internal/bank/match.go", "internal/ledger/day_test.go", "Makefile"),
    ("posting", "day", "statement", "match", "balance", "reversal"),
    (
        "The day close hangs when a statement arrives twice. Make the import idempotent.",
        "Match bank lines by reference first and by amount only within three days.",
        "Reversals of a closed day belong to the next open day. Check what the auditors' export says.",
        "Take the retry out of post.go, the queue does that now, and remove what nobody calls any more.",
        "Why is the balance of March one cent off? Compare the postings with the statements.",
        "Read the whole ledger and tell me which accounts nobody posts to any more.",
        "Export for the auditors: one file a month, with the reversals beside what they reverse.",
        "The import of statements stops at a line with two references. Take the first, note the second.",
        "Close the day automatically when every statement is matched, never before six.",
        "Give postings that wait for a statement an age, and list the oldest first.",
        "Run the matching of last year again with the new rules and say what would differ.",
    ),
)  # fmt: skip
PROJECTS = (BOOKING, TIDES, BOOKS)

REPLIES = (
    "The {thing} is worked out in two places. I will keep the one in {file} and let the other call it.",
    "Found it: {file} reads the {thing} before the lock is taken. A test shows it now; next comes the change.",
    "All tests pass. In {file} the {thing} is rounded once, at the end, as you asked.",
    "I looked at {file}: the {thing} keeps its old name in the API, only the inner field changed.",
    "Done with {file}. What is left: the {thing} in the snapshots, and a sentence in the docs.",
)
FOLLOW_UPS = (
    "Good. Now the same for the {thing}.",
    "Keep {file} small: move what is only about the {thing} out of it.",
    "And what happens to a {thing} that is changed meanwhile?",
    "Run the tests again, then look at {file} once more.",
    "That test proves nothing: it passes without the change. Make the {thing} fail first.",
    "Please explain in two sentences why {file} needed this.",
)
THOUGHTS = "The {thing} depends on {file}; if the order changes there, the rounding changes too. First a test."

_CODE = (
    "def find_{thing}(desk: Desk, number: int) -> {Thing} | None:",
    '    """The {thing} with this number, or nothing where the desk has closed it."""',
    "    row = desk.rows.get(number)",
    "    if row is None or row.closed_at is not None:",
    "        return None",
    "    return {Thing}(number=row.number, cents=row.cents, berth=row.berth, sailing=row.sailing)",
    "",
    "class {Thing}Store:",
    "    def put(self, {thing}: {Thing}, *, by: Clerk) -> None:",
    "        with self.lock:",
    "            before = self.rows.get({thing}.number)",
    "            self.rows[{thing}.number] = {thing}.stamp(by, self.clock.now())",
    "            self.journal.note(before, {thing}, number={number})",
    "",
)


def write_code(project: Project, random: Random, tokens: int) -> str:
    """About so many tokens of a file, numbered as the reading tool numbers them."""
    size = min(int(tokens * CHARACTERS_PER_TOKEN), LONGEST_TEXT)
    parts: list[str] = []
    written, line = 0, random.randrange(1, 400)
    while written < size:
        thing = random.choice(project.things)
        number = random.randrange(100, 99_999)
        for pattern in _CODE:
            text = pattern.format(thing=thing, Thing=thing.capitalize(), number=number)
            parts.append(f"{line:>6}\t{text}")
            written += len(parts[-1]) + 1
            line += 1
    return "\n".join(parts)


def write_test_run(project: Project, random: Random, tokens: int) -> str:
    """What a test runner prints."""
    size = min(int(tokens * CHARACTERS_PER_TOKEN), LONGEST_TEXT)
    lines = [f"running the tests of {project.name}"]
    while sum(map(len, lines)) < size:
        thing, took = random.choice(project.things), random.randrange(1, 900)
        lines.append(f"ok   test_{thing}_{random.randrange(10, 99)}_keeps_its_number ({took} ms)")
    lines.append(f"{len(lines) - 1} passed, 0 failed")
    return "\n".join(lines)


def shorten_wish(wish: str) -> str:
    """Its first sentence, for a title."""
    return cut_title(wish.partition(". ")[0].rstrip("."), 90)


def say(patterns: Sequence[str], project: Project, random: Random) -> str:
    return random.choice(patterns).format(thing=random.choice(project.things), file=random.choice(project.files))


def write_summary(project: Project, random: Random, wishes: Sequence[str]) -> str:
    """As the client writes it behind a compaction: shorter than it should be, so that something is lost."""
    asked = "\n".join(f"- {wish}" for wish in wishes[:3]) or "- see the branch"
    files = "\n".join(f"- {project.get_path(file)}: read and changed" for file in random.sample(project.files, 3))
    return (
        "This session is being continued from a previous conversation that ran out of context. "
        "The conversation is summarized below:\n"
        f"1. Primary Request and Intent:\n{asked}\n\n"
        f"2. Key Technical Concepts:\n- {', '.join(project.things[:4])}\n\n"
        f"3. Files and Code Sections:\n{files}\n\n"
        f"4. Errors and fixes:\n- a {project.things[0]} was counted twice; fixed, with a test\n\n"
        f"5. Pending Tasks:\n- the {project.things[1]} in the snapshots\n\n"
        "6. Current Work:\nThe tests pass; the last change is not committed yet."
    )
