"""An MCP server with one tool, on standard input and output: what a person adds between two runs of the client."""

import json
import sys

TOOL = {
    "name": "find_harbour",
    "description": "Finds the nearest harbour to a place.",
    "inputSchema": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}


def answer(method: str, asked: dict[str, object]) -> dict[str, object]:
    if method == "initialize":
        named = {"name": "maps", "version": "1"}
        return {"protocolVersion": asked["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": named}
    return {"tools": [TOOL]} if method == "tools/list" else {}


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message["method"], message.get("params") or {})
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
            sys.stdout.flush()
