"""Bodies as they come over HTTP: encodings undone within a limit, refused with a status and a sentence otherwise."""

import zlib
from collections.abc import Iterator

MIB = 1024 * 1024
TRANSCRIPT_BYTES = 64 * MIB  # of a body, as sent and as unpacked
TRANSCRIPT_LINES = 100_000  # lines of transcripts have a kilobyte and more; each costs as much when it is read
_STEP = 1 * MIB
_STRONGEST_GZIP = 1032  # bytes out of one, at most
_UNSEEN_BYTES = 24 * MIB  # kept without having looked how many follow


class BodyRefused(Exception):
    """A body that is not taken; nothing of it was kept."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def unpack_body(
    data: bytes, encoding: str, *, limit_bytes: int = TRANSCRIPT_BYTES, most_lines: int | None = None
) -> bytes:
    """Identity and gzip; a bomb is stopped at the limit, not after it."""
    wanted = encoding.strip().lower()
    if wanted in ("", "identity"):
        unpacked = data
    elif wanted == "gzip":
        unpacked = _gunzip(data, limit_bytes, most_lines)
    else:
        raise BodyRefused(415, "Unsupported content encoding. Send the body plain or with Content-Encoding: gzip.")
    if len(unpacked) > limit_bytes:
        raise BodyRefused(413, _too_large(limit_bytes))
    return unpacked


def refuse_many_lines(data: bytes, *, most: int = TRANSCRIPT_LINES) -> None:
    """Raises BodyRefused."""
    if data.count(b"\n") > most:
        raise BodyRefused(413, _too_many_lines(most))


def _gunzip(data: bytes, limit_bytes: int, most_lines: int | None) -> bytes:
    if len(data) * _STRONGEST_GZIP > _UNSEEN_BYTES < limit_bytes:
        # Inflated once to see how large it is, with nothing kept: a bomb ends here.
        line_count = 0
        for piece in _inflate(data, limit_bytes):
            line_count += 0 if most_lines is None else piece.count(b"\n")
            if most_lines is not None and line_count > most_lines:
                raise BodyRefused(413, _too_many_lines(most_lines))
    return b"".join(_inflate(data, limit_bytes))


def _inflate(data: bytes, limit_bytes: int) -> Iterator[bytes]:
    size_bytes = 0
    rest = data
    while rest:  # a gzip file may have several members
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        while not member.eof:
            try:
                piece = member.decompress(rest, _STEP)
            except zlib.error as error:
                raise BodyRefused(400, "The body is not valid gzip.") from error
            if not piece and not member.unconsumed_tail and not member.eof:
                raise BodyRefused(400, "The gzip body is incomplete. Send it again.")
            size_bytes += len(piece)
            if size_bytes > limit_bytes:
                raise BodyRefused(413, _too_large(limit_bytes))
            yield piece
            rest = member.unconsumed_tail
        rest = member.unused_data.lstrip(b"\x00")


def _too_many_lines(most: int) -> str:
    return f"The body has more than {most:,} lines. Split the body at line ends and send several requests."


def _too_large(limit_bytes: int) -> str:
    return f"The decompressed body is larger than {limit_bytes / MIB:g} MiB. Send less per request."
