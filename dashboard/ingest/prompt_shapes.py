"""System prompt and tools of a request that was told whole, as the shape that is kept of them. No Django here."""

from functools import partial

from compaction.prompt.fingerprint import fingerprint_request
from compaction.prompt.request import PromptRequest, write_canonical, write_json
from dashboard.ingest.observed import ObservedShape, Rules
from dashboard.ingest.transcripts import change_names, digest_text, find_redactor


def make_shape(request: PromptRequest, rules: Rules) -> tuple[ObservedShape, int]:
    """As a transcript's shape line gives it, so that one prompt is one shape whoever tells of it; and how much was
    taken out of it."""
    tools = [tool.fields for tool in request.tools]
    text = write_canonical((request.system, tools))
    digest = digest_text(rules.digest_key, text.encode("utf-8", "surrogatepass"))
    prompt = PromptRequest(model=None, tools=request.tools, system=request.system)
    redaction = find_redactor(rules)
    prints = fingerprint_request(prompt, partial(digest_text, rules.digest_key))
    content, count = None, 0
    if rules.keeps_content:
        shape = {"system": request.system, "tools": tools}
        line = write_json({"type": "api-request-shape", "shapeHash": digest, "shape": shape})
        content, counts = redaction.redact_one(line.encode("utf-8", "replace"))
        count = sum(counts.values())
    fields = change_names(prints, redaction.clean).to_fields()
    return ObservedShape(digest, fields, content, count > 0, rules.redaction_version), count
