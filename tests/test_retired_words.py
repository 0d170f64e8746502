"""Retired words: phrases of early versions that the texts of the product must not use again.

The texts are those a person reads: templates, forms, messages, errors, the command line, descriptions of the API, and
scripts of the pages. Comments and docstrings are not checked.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Each retired phrase with what to write instead.
RETIRED = {
    r"ways? in": "data source",
    r"anew": "again",
    r"whom": "who",
    r"nobody": "no one, or name the subject",
    r"somebody": "someone, or name the role",
    r"for nothing": "wasted",
    r"taken? in": "imported",
    r"told by": "reported by",
    r"(is|was|be|are) said": "reported",
    r"said by": "reported by",
    r"(stands?|stood) still": "not running",
    r"lets? go": "discarded",
    r"founds? (a )?team": "create team",
    r"invented": "sample, fictional",
    r"dearest": "most expensive",
    r"held against": "compared with",
    r"not found afterwards": "lost",
    r"(came|comes?) back": "restored",
    r"no such": "... not found",
    r"written again": "re-written",
    r"that is all": "end of list",
    r"(warning|error|auto-compact|blocking) lines?": "threshold",
    r"laid aside": "moved to Dead",
    r"make (a|the) (key|demo)": "create key, load demo data",
    r"markers?": "cache breakpoint",
}
_RETIRED = re.compile(rf"\b({'|'.join(RETIRED)})\b", re.IGNORECASE)

# Prompts: a model reads them, and their words were measured.
PROMPTS = (
    "compaction/compactors/",
    "compaction/context/reminder.py",
    "compaction/transcripts/",
    "dashboard/agents/prompts.py",
    "dashboard/demo/",
    "dashboard/runs/native_requests.py",
)
# Phrases of programs that Plimsoll recognises.
QUOTED_FROM_OTHERS = ("No such file or directory",)

_TEXT_ATTRIBUTES = "title|aria-label|placeholder|alt|label|data-action|data-confirm|data-key-words"
_ATTRIBUTE = re.compile(rf'(?:{_TEXT_ATTRIBUTES})="([^"]*)"')
_HIDDEN = re.compile(r"\{#.*?#\}|\{% comment.*?endcomment %\}|<(script|style)\b.*?</\1>", re.DOTALL)
_TEMPLATE_TAG = re.compile(r"\{[{%].*?[}%]\}", re.DOTALL)
_QUOTED = re.compile(r'"([^"]*)"')
_SCRIPT_TEXT = re.compile(r'"([^"\n]*)"|`([^`]*)`')


def list_files(folder: str, ending: str) -> list[str]:
    """Return the files to check, as paths from the root."""
    paths = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob(f"*{ending}"))
    return [path for path in paths if not path.startswith(PROMPTS) and "/migrations/" not in path]


def read_template_texts(source: str) -> Iterator[str]:
    """Yield visible text, texts of attributes, and quoted arguments of template tags."""
    source = _HIDDEN.sub(" ", source)
    for tag in _TEMPLATE_TAG.findall(source):
        yield from _QUOTED.findall(tag)
    source = _TEMPLATE_TAG.sub("…", source)
    yield from _ATTRIBUTE.findall(source)
    yield re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", source))


def read_python_texts(source: str) -> Iterator[str]:
    """Yield every string with a space that is no docstring; of an f-string its parts in a row."""
    tree = ast.parse(source)
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            silent |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.value


def read_script_texts(source: str) -> Iterator[str]:
    """Yield the string literals of a script."""
    code = "\n".join(re.sub(r"(^|\s)//.*", "", line) for line in source.splitlines())
    for quoted, template in _SCRIPT_TEXT.findall(code):
        yield quoted or template


READERS = {".html": read_template_texts, ".py": read_python_texts, ".js": read_script_texts}
FOLDERS = (("templates", ".html"), ("dashboard", ".py"), ("compaction", ".py"), ("static/js", ".js"))


def find_retired(text: str) -> list[str]:
    """Return the retired phrases of a text. A single word is a key or a code, not a sentence."""
    for quoted in QUOTED_FROM_OTHERS:
        text = text.replace(quoted, "")
    return [match[0] for match in _RETIRED.finditer(text) if " " in text.strip()]


@pytest.mark.parametrize(("folder", "ending"), FOLDERS)
def test_no_text_uses_a_retired_word(folder: str, ending: str) -> None:
    """Every hit is listed with its text, so that one run shows all that is to be rewritten."""
    hits = [
        f"{path}: {word!r} in {text.strip()[:160]!r}"
        for path in list_files(folder, ending)
        for text in READERS[ending]((ROOT / path).read_text())
        for word in find_retired(text)
    ]
    assert not hits, "\n".join(hits)


def test_a_retired_word_is_found_wherever_a_person_reads_it() -> None:
    template = '{# anew #}<p title="told by {{ name }}">{% include "x" with text="Ways in" %} for {{ n }} nothing</p>'
    assert [word for text in read_template_texts(template) for word in find_retired(text)] == ["Ways in", "told by"]
    code = 'def f():\n    """Written anew."""\n    raise Refused(f"Level {name} anew.", "anew")\n'
    assert [word for text in read_python_texts(code) for word in find_retired(text)] == ["anew"]
    script = 'say("Taken in"); // said by nobody\nsay(`${count} taken in`);'
    assert [word for text in read_script_texts(script) for word in find_retired(text)] == ["Taken in", "taken in"]
