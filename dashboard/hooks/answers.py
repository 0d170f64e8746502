"""What a hook answered, read with suspicion: JSON in the client's words, cut to length, secrets out of it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.runs.choices import LONGEST_INSTRUCTIONS

LONGEST_TEXT = 10_000  # characters of what the model is to see: the client's own limit
LONGEST_MESSAGE = 500  # of what people are to see


class BadAnswer(Exception):
    """It cannot be read as one. The message is a sentence."""


@dataclass(frozen=True)
class HookAnswer:
    instructions: str = ""
    display_message: str = ""
    is_blocking: bool = False
    reason: str = ""
    added_text: str = ""


def read_body(body: bytes | None) -> object:
    """Raises BadAnswer. No body at all is an answer too: nothing to say."""
    if body is None:
        raise BadAnswer("The response is larger than 64 KiB and was ignored.")
    if not body.strip():
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise BadAnswer("The response is not JSON.") from None


def read_answer(said: object, *, clean: Callable[[str], str]) -> HookAnswer:
    """`clean` takes secrets out of a text. Raises BadAnswer."""
    if said is None:
        return HookAnswer()
    if not isinstance(said, Mapping):
        raise BadAnswer("The response is not a JSON object.")
    nested = said.get("hookSpecificOutput")
    texts = {**(nested if isinstance(nested, Mapping) else {}), **said}

    def take(name: str, longest: int) -> str:
        return clean(_take_text(texts, name))[:longest]

    return HookAnswer(
        instructions=take("instructions", LONGEST_INSTRUCTIONS),
        display_message=take("systemMessage", LONGEST_MESSAGE),
        is_blocking=said.get("decision") == "block" or said.get("continue") is False,
        reason=take("reason", LONGEST_MESSAGE) or take("stopReason", LONGEST_MESSAGE),
        added_text=take("additionalContext", LONGEST_TEXT),
    )


def _take_text(texts: Mapping[str, Any], name: str) -> str:
    text = texts.get(name)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise BadAnswer(f"Its answer has something else than a text as {name}.")
    # PostgreSQL takes no NUL, and half a surrogate pair cannot be written anywhere.
    return text.replace("\x00", "").encode("utf-8", "replace").decode().strip()
