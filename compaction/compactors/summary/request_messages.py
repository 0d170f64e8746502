"""Messages as they stand in a request body: their blocks, and the prompt put behind them."""

from collections.abc import Mapping, Sequence


def add_prompt(messages: Sequence[Mapping[str, object]], prompt: str) -> list[Mapping[str, object]]:
    """The messages with the prompt at the end: in the last message where that is the user's, else as a new one."""
    block = {"type": "text", "text": prompt}
    if not messages or messages[-1].get("role") != "user":
        return [*messages, {"role": "user", "content": [block]}]
    return [*messages[:-1], {**messages[-1], "content": [*list_blocks(messages[-1]), block]}]


def remove_prompt(messages: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """The messages as they were before `add_prompt`."""
    *before, last = messages
    blocks = list_blocks(last)[:-1]
    return [*before, {**last, "content": blocks}] if blocks else before


def list_blocks(message: Mapping[str, object]) -> list[object]:
    """The blocks of a message of a request; a string is one text block."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content) if isinstance(content, Sequence) else []
