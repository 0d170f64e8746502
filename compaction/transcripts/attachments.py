"""The text of an attachment line that the model reads; none for attachments that only the client reads."""

from collections.abc import Mapping
from enum import StrEnum

from compaction.transcripts.client_protocol import INVISIBLE_ATTACHMENTS, AttachmentKind
from compaction.transcripts.entries import Entry
from compaction.transcripts.json_fields import get_count, get_fields, get_items, get_text
from compaction.transcripts.payloads import Attachment

_TEXT_KEYS = ("text", "prompt", "content", "planContent", "date", "message")


class Extent(StrEnum):
    """How much of a file an attachment holds."""

    WHOLE = "whole"
    CUT = "cut"
    NAMED = "only named"


def classify_extent(entry: Entry) -> Extent | None:
    """Return how much of a file an attachment holds; None for what is no file, and where it is not known."""
    if not isinstance(entry.payload, Attachment):
        return None
    if entry.payload.kind == AttachmentKind.FILE_NAMED:
        return Extent.NAMED
    attachment = get_fields(entry.fields, "attachment")
    file = get_fields(get_fields(attachment, "content"), "file")
    shown, total = get_count(file, "numLines"), get_count(file, "totalLines")
    if attachment.get("truncated") is True:
        return Extent.CUT
    if shown is None or total is None:
        return None
    return Extent.WHOLE if shown >= total else Extent.CUT


def render_attachment(entry: Entry) -> str:
    """Return the text the model reads, "" for none: as the client rendered it, else the attachment's own text."""
    payload = entry.payload
    if not isinstance(payload, Attachment):
        return ""
    if payload.rendered:
        return "\n".join(payload.rendered)
    if payload.kind in INVISIBLE_ATTACHMENTS:
        return ""
    attachment = get_fields(entry.fields, "attachment")
    name = get_text(attachment, "filename") or get_text(attachment, "displayPath")
    body = _find_text(attachment)
    return f"{name}\n{body}" if name and body else body


def _find_text(fields: Mapping[str, object]) -> str:
    file = get_fields(get_fields(fields, "content"), "file") or get_fields(fields, "file")
    if get_text(file, "content"):
        return get_text(file, "content") or ""
    for key in _TEXT_KEYS:
        if text := get_text(fields, key):
            return text
    lines = []
    for key in ("content", "addedLines", "files"):
        for item in get_items(fields, key):
            line = item if isinstance(item, str) else _describe(item)
            if line:
                lines.append(line)
    return "\n".join(lines)


def _describe(item: object) -> str:
    if not isinstance(item, Mapping):
        return ""
    texts = (get_text(item, key) for key in ("status", "path", "subject", "content", "text", "description"))
    return " ".join(text for text in texts if text)
