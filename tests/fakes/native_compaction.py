"""Server-side compaction as the SDK and its documentation tell of it: on demand and at a threshold, signed blocks.

What the real API does beyond that is not known here: this fake can only be as right as those sources.
"""

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from typing import Any

from tests.fakes.prompt_cache import CountedPrompt, count_prompt_tokens
from tests.fakes.replies import Reply, list_texts, refuse

ON_DEMAND_BETA, THRESHOLD_BETA = "compact-2026-09-04", "compact-2026-01-12"
EDIT_TYPE = "compact_20260112"
LEAST_TRIGGER_TOKENS, USUAL_TRIGGER_TOKENS = 50_000, 150_000
# Not a list of its own making: models that the documentation leaves out.
UNSUPPORTED = ("claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5")
_REPLY_SHAPING = ("context_management", "stop_sequences", "output_format")
_SEAL = b"only this server knows it"


def find_refusal(body: Mapping[str, Any], betas: str) -> Reply | None:
    """The 400 for a wish to compact, or for a block that came back, that does not hold."""
    fault = next(_find_faults(body, [beta.strip() for beta in betas.split(",")]), None)
    if fault is not None:
        return refuse(400, "invalid_request_error", fault)
    return next(_find_bad_blocks(body), None)


def _find_faults(body: Mapping[str, Any], betas: list[str]) -> Iterator[str]:
    edit = find_edit(body)
    if "compaction" in body:
        yield from _find_faults_on_demand(body, betas)
    elif edit is not None:
        if THRESHOLD_BETA not in betas:
            yield f"context_management.edits.0: Input tag '{EDIT_TYPE}' does not match any of the expected tags"
        if _find_trigger(edit) < LEAST_TRIGGER_TOKENS:
            yield "context_management.edits.0.trigger.value: must be at least 50000"
    else:
        return
    if str(body.get("model")).startswith(UNSUPPORTED):
        yield f"compaction is not supported for {body.get('model')}"


def _find_faults_on_demand(body: Mapping[str, Any], betas: list[str]) -> Iterator[str]:
    if ON_DEMAND_BETA not in betas:
        yield "compaction: Extra inputs are not permitted"
    if find_edit(body) is not None:
        yield "compaction: cannot be combined with a compact_ edit"
    for name in _REPLY_SHAPING:
        if name in body:
            yield f"{name}: not permitted together with compaction"
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        yield "tool_choice: not permitted together with compaction"


def _find_bad_blocks(body: Mapping[str, Any]) -> Iterator[Reply]:
    for number, message in enumerate(body.get("messages") or []):
        content = message.get("content")
        for place, block in enumerate(content if isinstance(content, list) else []):
            if block.get("type") != "compaction":
                continue
            if number or place:
                yield _refuse_block("compaction_block_misplaced")
            elif not block.get("signature"):
                yield _refuse_block("compaction_signature_invalid")
            elif block != sign_block(block.get("content")):
                yield _refuse_block("compaction_content_mismatch")


def _refuse_block(code: str) -> Reply:
    return refuse(400, "invalid_request_error", f"messages.0: {code}", error_code=code)


def find_edit(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    edits = (body.get("context_management") or {}).get("edits") or []
    return next((edit for edit in edits if str(edit.get("type")).startswith("compact_")), None)


def is_due(body: Mapping[str, Any]) -> bool:
    """Whether this request is answered with a block."""
    edit = find_edit(body)
    return "compaction" in body or (edit is not None and count_prompt_tokens(body) >= _find_trigger(edit))


def pauses(body: Mapping[str, Any]) -> bool:
    """Whether nothing is said after the block."""
    edit = find_edit(body)
    return edit is None or edit.get("pause_after_compaction") is True


def _find_trigger(edit: Mapping[str, Any]) -> int:
    return int((edit.get("trigger") or {}).get("value", USUAL_TRIGGER_TOKENS))


def sign_block(content: str | None) -> dict[str, object]:
    """The block for this content; another content has another signature."""
    told = (content or "").encode("utf-8", "surrogatepass")
    return {
        "type": "compaction",
        "content": content,
        "encrypted_content": hashlib.sha256(told).hexdigest(),
        "signature": hmac.digest(_SEAL, told, "sha256").hex(),
        "tool_changes": [],
    }


def write_content(body: Mapping[str, Any], _leaves_out: tuple[str, ...] = ()) -> str:
    """What was said, shortened: a server's summary has no sections."""
    said = [text[:200] for text in list_texts(body)]
    return "<summary>\n" + "\n".join(said) + "\n</summary>"


def list_block_events(block: Mapping[str, object]) -> Iterator[dict[str, object]]:
    start = {**block, "content": None, "encrypted_content": None}
    yield {"type": "content_block_start", "index": 0, "content_block": start}
    delta = {
        "type": "compaction_delta",
        "content": block["content"],
        "encrypted_content": block["encrypted_content"],
    }
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}


def to_usage(prompt: CountedPrompt, output_tokens: int) -> dict[str, object]:
    """What the compaction took stands among the iterations, and nowhere else."""
    nothing = CountedPrompt(0, 0, 0, 0).to_usage(0)
    return nothing | {"iterations": [{"type": "compaction", **prompt.to_usage(output_tokens)}]}
