"""A summary without a model: quoted from the transcript, never interpreted, the same for the same input.

The Summarizer where no key is configured. What goes into each section lives in the extract files.
"""

from collections.abc import Sequence

from compaction.compactors.commits import list_commits
from compaction.compactors.digest import cut_text
from compaction.compactors.extract_earlier import list_earlier_pieces
from compaction.compactors.extract_files import list_file_pieces
from compaction.compactors.extract_pieces import CutRank, Piece, quote, quote_in_line, write_sections
from compaction.compactors.extract_state import list_current_pieces, list_next_pieces, list_pending_pieces
from compaction.compactors.extract_story import list_concept_pieces, list_failure_pieces, list_step_pieces
from compaction.compactors.failures import find_failures
from compaction.compactors.known_files import read_known_files
from compaction.compactors.spoken import Said, SaidKind
from compaction.compactors.summary_prompt import list_sections
from compaction.compactors.todos import read_todos
from compaction.compactors.wishes import list_constraints
from compaction.compactors.work import Work, read_work
from compaction.context.tokens import estimate_tokens
from compaction.errors import CompactionCancelled
from compaction.ports import Monitor, SummaryAnswer, SummaryRequest, Variant
from compaction.transcripts.entries import Entry

SUMMARY_CAP_TOKENS = 20_000  # the client's cap for a summary's output
# Ours: a summary should be at most half of what it tells, as far as code, notes and steps go.
AIM_PERCENT = 50
LEAST_AIM_TOKENS = 1_500
LABEL = "made without a model: quoted from the transcript, not interpreted"
_FIRST_REQUEST_CHARACTERS = 1_500
_SHORT_MESSAGE_CHARACTERS = 160
_MOST_CONSTRAINTS = 30


class ExtractiveSummarizer:
    """Answers every request for a summary from the entries it is to cover."""

    def __init__(self, *, cap_tokens: int = SUMMARY_CAP_TOKENS) -> None:
        self._cap_tokens = cap_tokens

    def summarize(self, request: SummaryRequest, monitor: Monitor) -> SummaryAnswer:
        """The summary; raises CompactionCancelled once the monitor says so."""
        if monitor.is_cancelled():
            raise CompactionCancelled
        text = write_extract(request.entries, request.variant, cap_tokens=self._cap_tokens)
        return SummaryAnswer(text=f"<summary>\n{text}\n</summary>", stop_reason="end_turn", label=LABEL)


def write_extract(
    entries: Sequence[Entry], variant: Variant = Variant.FULL, *, cap_tokens: int = SUMMARY_CAP_TOKENS
) -> str:
    """All nine sections from these entries, within the cap."""
    work = read_work(entries)
    files = read_known_files(entries, work)
    todos = read_todos(entries, work)
    failures = find_failures(work)
    commits = list_commits(work)
    cwd = next((entry.cwd for entry in reversed(entries) if entry.cwd), None)
    branch = next((entry.git_branch for entry in reversed(entries) if entry.git_branch), None)
    pieces = [
        *_list_intent_pieces(work),
        *list_earlier_pieces(work.earlier_summary),
        *list_concept_pieces(work, files, cwd=cwd, branch=branch),
        *list_file_pieces(files, work, cwd=cwd, commits=commits),
        *list_failure_pieces(failures, cwd=cwd),
        *list_step_pieces(work, commits, failures),
        *_list_word_pieces(work.said),
        *list_pending_pieces(todos, work),
        *list_current_pieces(work, cwd=cwd),
        *list_next_pieces(work, todos, failures),
    ]
    aim_tokens = max(LEAST_AIM_TOKENS, estimate_tokens(entries) * AIM_PERCENT // 100)
    return write_sections(pieces, list_sections(variant), cap_tokens=cap_tokens, aim_tokens=aim_tokens)


def _list_intent_pieces(work: Work) -> list[Piece]:
    lines = [f"[This summary was {LABEL}.]"]
    requests = [said for said in work.said if said.kind is not SaidKind.ANSWER]
    if requests:
        title = "The first request since the last compaction" if work.earlier_summary else "The first request"
        lines += [f"- {title}:", quote(cut_text(requests[0].text, _FIRST_REQUEST_CHARACTERS))]
    if len(requests) > 1:
        lines += [f"- The newest of {len(requests)} requests (all are in section 6):"]
        lines += [quote(cut_text(requests[-1].text, _FIRST_REQUEST_CHARACTERS))]
    constraints = list_constraints(work.said)[-_MOST_CONSTRAINTS:]
    if constraints:
        lines.append("- Limits and wishes, in the user's words:")
        lines += [f"  - {quote_in_line(constraint.text)}" for constraint in constraints]
    return [Piece(1, "\n".join(lines))]


def _list_word_pieces(said: Sequence[Said]) -> list[Piece]:
    """Every message whole, in order, with its time; a message sent again is only named."""
    pieces = []
    seen: dict[str, int] = {}
    for number, words in enumerate(said, start=1):
        when = f" at {words.at:%H:%M}" if words.at else ""
        kind = "" if words.kind is SaidKind.PROMPT else f" ({words.kind})"
        head = f"- Message {number}{when}{kind}:"
        first = seen.setdefault(words.text, number)
        if first != number and len(words.text) > _SHORT_MESSAGE_CHARACTERS:
            pieces.append(Piece(6, f"{head} the same as message {first}", CutRank.USER_MESSAGE, len(said) - number))
            continue
        is_line = "\n" not in words.text and len(words.text) <= _SHORT_MESSAGE_CHARACTERS
        text = f"{head} {quote_in_line(words.text)}" if is_line else f"{head}\n{quote(words.text)}"
        short = f"{head} {quote_in_line(cut_text(words.text, _SHORT_MESSAGE_CHARACTERS))}"
        pieces.append(Piece(6, text, CutRank.USER_MESSAGE, len(said) - number, short if len(short) < len(text) else ""))
    return pieces
