"""Constants of the client's protocol are written in one file and imported everywhere else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from compaction.transcripts import client_protocol
from compaction.transcripts.client_protocol import AttachmentKind, ToolName

ROOT = Path(__file__).resolve().parents[3]
HOME = "compaction/transcripts/client_protocol.py"
# Examples of requests and of pages; the invented sessions of the demo.
EXAMPLES = ("dashboard/api/", "dashboard/demo/", "dashboard/views/style_samples.py")
# Words that mean other things as well: labels of tables and forms, keys of JSON, our own kinds of restored items.
COMMON_WORDS = {"Read", "Write", "Edit", "Agent", "Task", "file", "memory", "todo", "plan_mode", "status"}
TEXTS = {
    value
    for name, value in vars(client_protocol).items()
    if name.isupper() and isinstance(value, str) and value not in COMMON_WORDS
}
TEXTS.update(client_protocol.MACHINE_TAGS, client_protocol.OUTPUT_TAGS)


def _list_strings(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    docstrings = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, documented)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in docstrings:
            yield node.value


def test_no_other_file_writes_out_a_constant_of_the_protocol() -> None:
    names = ({*ToolName} | {*AttachmentKind}) - COMMON_WORDS
    sentences = {text for text in TEXTS if " " in text}
    tag = re.compile("|".join(rf"</?{re.escape(text)}\b" for text in TEXTS if "-" in text))
    found = []
    for path in sorted(file for folder in ("compaction", "dashboard") for file in (ROOT / folder).rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place == HOME or place.startswith(EXAMPLES) or "migrations" in path.parts:
            continue
        for text in _list_strings(path):
            is_written_out = text in names or text in TEXTS or any(sentence in text for sentence in sentences)
            if is_written_out or tag.search(text):
                found.append((place, text))
    assert found == []


def test_tools_with_common_names_are_not_listed_elsewhere_in_the_engine() -> None:
    tools = {"Read", "Write", "Edit", "Agent", "Task"}
    engine = (path for path in (ROOT / "compaction").rglob("*.py") if path.relative_to(ROOT).as_posix() != HOME)
    assert [(path.name, text) for path in engine for text in _list_strings(path) if text in tools] == []
