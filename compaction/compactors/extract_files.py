"""Files in a summary made without a model: what was done to each, why, and the code that was written last."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from compaction.compactors.commits import Commit
from compaction.compactors.definitions import find_definitions, list_new_texts
from compaction.compactors.digest import cut_lines, is_change, shorten_path, take_line
from compaction.compactors.extract_pieces import CutRank, Piece, quote_in_line
from compaction.compactors.known_files import KnownFile
from compaction.compactors.work import Work
from compaction.transcripts.client_protocol import FILE_WRITERS

SNIPPET_FILES = 16  # ours: files whose last change is shown as code
SNIPPET_LINES = 30
SNIPPET_CHARACTERS = 1_600
MOST_FILES = 250
_MOST_NAMES = 12
_SECTION = 3


def list_file_pieces(
    files: Sequence[KnownFile], work: Work, *, cwd: str | None, commits: Sequence[Commit] = ()
) -> list[Piece]:
    """Changed files first, then those only read; the newest of each first."""
    changed = [known for known in files if known.is_changed]
    only_read = [known for known in files if not known.is_changed]
    pieces: list[Piece] = []
    for age, known in enumerate(changed[:MOST_FILES]):
        pieces.append(_describe_change(known, work, cwd=cwd, commits=commits, age=age))
        if age < SNIPPET_FILES and (snippet := _show_last_change(known)):
            pieces.append(Piece(_SECTION, snippet, CutRank.SNIPPET, age))
    for age, known in enumerate(only_read[: MOST_FILES - len(pieces)], start=len(changed)):
        path = shorten_path(known.path, cwd)
        pieces.append(Piece(_SECTION, f"- {path}: {_count_uses(known)}", CutRank.FILE_NOTE, age, f"- {path}"))
    left_out = len(files) - min(len(changed), MOST_FILES) - min(len(only_read), max(0, MOST_FILES - len(pieces)))
    if len(files) > MOST_FILES and left_out > 0:
        pieces.append(Piece(_SECTION, f"[cut: {left_out:,} more files, not touched lately]"))
    return pieces


def _describe_change(known: KnownFile, work: Work, *, cwd: str | None, commits: Sequence[Commit], age: int) -> Piece:
    path = shorten_path(known.path, cwd)
    notes = [_count_uses(known)]
    change = next((action for action in reversed(known.actions) if is_change(action)), None)
    if change is not None and commits:
        commit = next((commit for commit in commits if commit.place > change.place), None)
        notes.append(
            f"committed as {quote_in_line(commit.subject)}" if commit else "NOT committed since its last change"
        )
    text = f"- **{path}**: {'; '.join(notes)}."
    if change is not None:
        remark = next((remark for remark in reversed(work.remarks) if remark.place <= change.place), None)
        if remark is not None and remark.turn == change.turn:
            text += f" Said with the last change: {quote_in_line(take_line(remark.text, 240))}."
    names = find_definitions(known.content or "")[:_MOST_NAMES]
    if names:
        text += f" Defines {', '.join(f'`{name}`' for name in names)}."
    return Piece(_SECTION, text, CutRank.FILE_NOTE, age, f"- {path} [note cut]")


def _count_uses(known: KnownFile) -> str:
    counts: Mapping[str, int] = {"written": known.writes, "edited": known.edits, "read": known.reads}
    used = [f"{verb} {times} times" if times > 1 else verb for verb, times in counts.items() if times]
    when = f", last at {known.seen_at:%H:%M}" if known.seen_at else ""
    return (", ".join(used) or "shown") + when


def _show_last_change(known: KnownFile) -> str:
    change = next((action for action in reversed(known.actions) if is_change(action)), None)
    if change is None:
        return ""
    texts = [text for text in list_new_texts(change) if text.strip()]
    if not texts:
        return ""
    suffix = PurePosixPath(known.path).suffix.lstrip(".")
    title = "As written" if change.name in FILE_WRITERS else "Last change"
    code = cut_lines(texts[-1].strip("\n"), SNIPPET_LINES, SNIPPET_CHARACTERS)
    body = "\n".join(f"  | {line}".rstrip() for line in code.splitlines())
    return f"  {title}{f' ({suffix})' if suffix else ''}:\n{body}"
