"""Sentences of any language: splits text, drops code and filler, cuts pasted logs.

The audit splits text by rules of its own (audit/statements): what the summary drops must not drop out of the audit.
"""

import re
from collections.abc import Sequence

# After a full stop and a space, or after a full-width mark, which no space follows; numbers and abbreviations excepted.
_BOUNDARY = re.compile(
    r"(?<=[.!?;])(?<!\.\.)(?<!e\.g\.)(?<!i\.e\.)(?<!\bvs\.)(?<!\bcf\.)(?<!z\.B\.)(?<!^\d\.)(?<!\s\d\.)\s+"
    r"|(?<=[。\uff01\uff1f\uff1b])(?![」』”\u2019\uff09)])|(?<=[。\uff01\uff1f\uff1b][」』”\u2019\uff09])|\n+"
)
_FENCE = re.compile(r"^[ \t]*```[^\n]*\n.*?(?:^[ \t]*```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_TAG_LINE = re.compile(r"</?thinking>", re.IGNORECASE)
_MARKUP = re.compile(r"^(?:[#>*+\s-]+(?=\s)|\d{1,3}[.)]\s+|[✅❌⚠️✓✗\s]+)+|[*_]{2}")
TERM = re.compile(r"`([^`\n]{3,60})`")  # names in an agent's text
_RULE = re.compile(r"^[-=_*|:\s]*$")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

_INTERJECTIONS = (
    r"good|great|excellent|perfect|nice|awesome|wonderful|fantastic|amazing|sure|okay|ok|alright|all right|absolutely"
    r"|certainly|definitely|of course|no problem|got it|understood|done|yes|yep|right|thanks?(?: you)?|sorry|hmm"
    r"|interesting|(?:good|great|excellent|nice|fair) (?:question|point|catch|thinking|idea|news|progress|work|feedback"
    r"|call|find)"
    r"|you(?:'re| are) (?:absolutely |completely |totally )?right|you raise a good point|that makes sense|makes sense"
    r"|now i (?:understand|see)|i see|i understand|let me see|found it|there it is"
    r"|gute (?:frage|idee)|guter punkt|alles klar|verstanden|perfekt|super|genau|sehr gut|gut"
    r"|bonne (?:question|idée)|très bien|parfait|d'accord|compris|buena (?:pregunta|idea)|muy bien|perfecto|entendido"
)
_OPENING = re.compile(rf"^(?:(?:{_INTERJECTIONS})\s*(?:[!.,:\u2014-]|\s-)+\s*)+", re.IGNORECASE)
_ONLY_INTERJECTION = re.compile(rf"^(?:{_INTERJECTIONS})(?: (?:to know|so far))?\W*$", re.IGNORECASE)
_CJK_FILLER = re.compile(
    r"^(?:好的|好问题|好主意|明白了?|收到|没问题|太好了|完美|很好|当然可以|なるほど|わかりました|承知しました|はい|良い質問です)[!\uff01。\uff0c,\s]*$"
)
# How an agent announces what it does next. Such a sentence is content where it gives a reason as well.
_ANNOUNCEMENT = re.compile(
    r"^(?:(?:now|next|first|then|finally|also|so|but|and|great|good|perfect|ok(?:ay)?|for now)[,!:]?\s+)*"
    r"(?:let me|let's|now (?:i|the|add|update|create|write|run|fix|check|replace|modify|remove|implement|populate"
    r"|verify|also)\b"
    r"|(?:add|update|create|run|replace|do) (?:the same|it|this)\b"
    r"|(?:i'll|i will|i'm going to|i am going to|i(?: also)? need to|i should|i want to)\s+(?:also |now |first "
    r"|just |then )*"
    r"(?:check|look|read|see|search|run|verify|find|examine|explore|understand|get|start|continue|view|inspect"
    r"|review|provide"
    r"|apply|write the|create the|be|try|proceed|mark|do|fix (?:this|it|that|the)|update (?:this|it|the)"
    r"|add (?:the|it|that))\b"
    r"|i (?:now )?(?:have|need)(?: a| the)? (?:clear|complete|good|full|enough|all)\b.{0,40}(?:picture"
    r"|understanding|context)"
    r"|lass mich|jetzt werde ich|laissez-moi|maintenant je|déjame"
    r"|ahora voy|让我|现在让我|我来看|接下来我|次に|それでは)",
    re.IGNORECASE,
)
_LET_ME = re.compile(
    r"^(?:(?:now|next|first|then|so|but|and)[,]? )*(?:let me|let's|let us)(?: (?:just|also|now|first))* ", re.IGNORECASE
)
_REASON = re.compile(
    r"\b(?:because|since|so that|instead|rather than|therefore|otherwise|doesn't|does not|can't|cannot|requires?"
    r"|fails?|without|to avoid|weil|damit|statt|parce que|au lieu|porque|en lugar)\b|因为|由于|而不是|以便|ため|ので",
    re.IGNORECASE,
)
_LOG_LINE = re.compile(
    r"^\s*(?:[\w./-]+\.\w{1,6}:\d+[:\s]|\d{4}-\d\d-\d\d[T ]|\d\d:\d\d:\d\d|\[?(?:INFO|DEBUG|WARN(?:ING)?|ERROR|TRACE)\b"
    r"|(?:---|===) \S|at \S+ ?\(|File \"|(?:PASS|FAIL|ok)\b\s|[✓✗✔✘+-] \S|npm |Traceback|\s{6,}\S)"
)


def split_sentences(text: str) -> list[str]:
    """Return sentences and lines, trimmed; full-width marks end a sentence as well."""
    return [part.strip() for part in _BOUNDARY.split(text) if part and part.strip()]


def list_prose(text: str) -> list[str]:
    """Return the sentences of an agent's text: without code blocks, tables, markup and filler."""
    prose = _TAG_LINE.sub("", _FENCE.sub("\n", text))
    sentences = []
    for line in prose.splitlines():
        if _RULE.match(line) or line.lstrip().startswith("|"):
            continue
        sentences += [clean for part in split_sentences(_MARKUP.sub("", line)) if (clean := strip_filler(part))]
    return sentences


def strip_filler(sentence: str) -> str:
    """Return the sentence without its opening interjections; "" where nothing else is said."""
    bare = sentence.strip()
    if _ONLY_INTERJECTION.match(bare) or _CJK_FILLER.match(bare):
        return ""
    shorter = _OPENING.sub("", bare).strip()
    if is_announcement(shorter):
        return ""
    # An announcement that gives its reason is content from its verb on.
    shorter = _LET_ME.sub("", shorter)
    return shorter if any(character.isalnum() for character in shorter) else ""


def drop_openings(text: str) -> str:
    """Return the text with the interjections at the start of its lines left out; everything else stays."""
    return "\n".join(_OPENING.sub("", line) if line[:1].isalpha() else line for line in text.splitlines())


def is_announcement(sentence: str) -> bool:
    """Return whether the sentence only announces the next look or edit."""
    return bool(_ANNOUNCEMENT.match(sentence)) and not _REASON.search(sentence)


def drop_code_blocks(text: str) -> str:
    """Return the text without fenced code, each block replaced by a mark with its length."""
    return _FENCE.sub(lambda block: f"[code: {max(0, block[0].count(chr(10)) - 1)} lines]\n", text)


def has_cjk(text: str) -> bool:
    """Return whether the text holds Chinese, Japanese or Korean characters."""
    return bool(_CJK.search(text))


def is_log_line(line: str) -> bool:
    """Return whether a line looks like output of a program rather than text of a person."""
    return bool(_LOG_LINE.match(line))


def cut_pasted_logs(text: str, *, longest_lines: int = 24) -> str:
    """Return the message with long runs of pasted output cut in the middle; prose stays whole."""
    lines = text.split("\n")
    shown: list[str] = []
    start = 0
    for end in range(len(lines) + 1):
        if end < len(lines) and (is_log_line(lines[end]) or not lines[end].strip()):
            continue
        shown += _cut_run(lines[start:end], longest_lines)
        shown += lines[end : end + 1]
        start = end + 1
    return "\n".join(shown)


def _cut_run(lines: Sequence[str], longest_lines: int) -> list[str]:
    if len(lines) <= longest_lines:
        return list(lines)
    half = longest_lines // 2
    return [*lines[:half], f"[cut: {len(lines) - 2 * half:,} lines of output]", *lines[-half:]]
