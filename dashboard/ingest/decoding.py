"""Decoding files: the next lines of a session's files, all prepared for one writing. No Django, any process.

A session is worked out as a whole whenever it is written, so its files are better written together.
"""

import os
import time
from dataclasses import dataclass, replace
from functools import partial

from compaction.context.policy import Policy
from compaction.errors import AgentMetaUnreadable
from compaction.transcripts.subagents import read_agent_meta
from dashboard.ingest.drawn import DrawnSession, draw_session
from dashboard.ingest.file_tail import Limits, Place, read_half_line, take_look
from dashboard.ingest.looks import PIECE_BYTES, FileLook, NextLook
from dashboard.ingest.observed import LineProblem, Piece, Prepared, Rules, merge_prepared
from dashboard.ingest.picture import pick_policy
from dashboard.ingest.quiet_lines import is_whole
from dashboard.ingest.transcript_folders import FoundFile, NotPlain, opened_file
from dashboard.ingest.transcripts import TOO_LONG, name_session, prepare, prepare_agent_meta

LARGEST_META_BYTES = 64 * 1024
_LIMITS = Limits(piece_bytes=PIECE_BYTES)


@dataclass(frozen=True, slots=True)
class Decoded:
    """One writing's worth; sessions that are drawn stand apart from those that are not."""

    prepared: Prepared
    looks: tuple[FileLook, ...] = ()
    size_bytes: int = 0
    drawn: tuple[DrawnSession, ...] = ()


def decode_files(looks: tuple[NextLook, ...], rules: Rules) -> Decoded:
    done = [_decode_meta(look.file, rules) if look.file.is_meta else _decode_transcript(look, rules) for look in looks]
    prepared = merge_prepared([prepared for prepared, _ in done])
    told, drawn = tuple(look for _, look in done), list[DrawnSession]()
    # What continues, or is continued, is drawn when it is written: only then all of it is there.
    is_all = not any(look.known.offset for look in looks) and not any(look.has_more for look in told)
    if rules.lines_policy is not None and is_all:
        prepared, drawn = _draw_sessions(prepared, rules.lines_policy, rules)
    return Decoded(prepared, told, sum(look.size_bytes for look in told), tuple(drawn))


def _draw_sessions(prepared: Prepared, policy: Policy, rules: Rules) -> tuple[Prepared, list[DrawnSession]]:
    rest, drawn = [], []
    for observed in prepared.sessions:
        session = draw_session(observed, policy, partial(pick_policy, rules.past_policies, policy), rules.prices)
        if session is None:
            rest.append(observed)
        else:
            drawn.append(session)
    return replace(prepared, sessions=tuple(rest)), drawn


def decode_piece(piece: Piece, rules: Rules) -> Decoded:
    return Decoded(prepare(piece, rules), size_bytes=len(piece.data))


def tell_too_long(name: str, line_number: int, size_bytes: int) -> Prepared:
    """A line that no reader takes was stepped over."""
    reason = f"The line has {size_bytes:,} bytes, more than is kept of one line."
    return Prepared(name, (), line_count=1, problems=(LineProblem(name, line_number, reason),), drops={TOO_LONG: 1})


def _decode_transcript(look: NextLook, rules: Rules) -> tuple[Prepared, FileLook]:
    file = look.file
    try:
        with opened_file(file.root, file.relative) as descriptor:
            found = take_look(descriptor, look.known, now_ns=time.time_ns(), limits=_LIMITS)
            half = b"" if found.has_more else read_half_line(descriptor, found.place)
    except OSError as error:
        return _refuse(look, error)
    takes_half = is_whole(half)
    data = found.data + half if takes_half else found.data
    first_line_number = found.first_line_number if found.data else found.place.line_count + 1
    if found.too_long_bytes:
        prepared = tell_too_long(file.path, found.place.line_count, found.too_long_bytes)
    else:
        prepared = prepare(Piece(data, file.path, *name_session(file.path), first_line_number), rules)
    return prepared, FileLook(
        file,
        found.place,
        size_bytes=len(data) + found.too_long_bytes,
        has_more=found.has_more,
        is_cut=bool(half) and not takes_half,
        is_open_line_read=takes_half,
        problem_count=prepared.problem_count,
    )


def _decode_meta(file: FoundFile, rules: Rules) -> tuple[Prepared, FileLook]:
    """What a sub-agent's own small file says; one that names no session or cannot be read says nothing."""
    place = Place(inode=file.inode, size_bytes=file.size_bytes, modified_ns=file.modified_ns, offset=file.size_bytes)
    look = FileLook(file, place, size_bytes=file.size_bytes)
    nothing = Prepared(file.path, ())
    session_id, agent_id = name_session(file.path)
    if session_id is None or agent_id is None:
        return nothing, look
    try:
        with opened_file(file.root, file.relative) as descriptor:
            meta = read_agent_meta(os.read(descriptor, LARGEST_META_BYTES))
    except OSError as error:
        return _refuse(NextLook(file, place), error)
    except AgentMetaUnreadable:
        problem = LineProblem(file.path, 1, "The sub-agent's file is not readable JSON.")
        return replace(nothing, problems=(problem,)), replace(look, problem_count=1)
    return prepare_agent_meta(session_id, agent_id, meta, rules), look


def _refuse(look: NextLook, error: OSError) -> tuple[Prepared, FileLook]:
    reason = "not a plain file" if isinstance(error, NotPlain) else error.strerror or type(error).__name__
    return Prepared(look.file.path, ()), FileLook(look.file, look.known, refusal=f"{look.file.path}: {reason}.")
