"""The example of docs/library.md runs as it is printed there."""

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

CHAPTER = Path(__file__).resolve().parents[2] / "docs" / "library.md"
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def make_session(path: Path, calls: int) -> None:
    lines = []
    parent = None
    for number in range(calls):
        at = (datetime(2026, 11, 16, 9, tzinfo=UTC) + timedelta(minutes=number)).isoformat()
        known = {"sessionId": "s", "version": "2.1.126", "timestamp": at, "isSidechain": False}
        prompt = {"role": "user", "content": f"step {number}"}
        usage = {"input_tokens": 10, "cache_read_input_tokens": 20_000 + 1_000 * number, "output_tokens": 300}
        answer = {
            "id": f"msg_{number}", "role": "assistant", "model": "claude-opus-4-6", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "done"}], "usage": usage,
        }  # fmt: skip
        lines.append({"type": "user", "uuid": f"u{number}", "parentUuid": parent, "message": prompt, **known})
        lines.append(
            {"type": "assistant", "uuid": f"a{number}", "parentUuid": f"u{number}", "message": answer, **known}
        )
        parent = f"a{number}"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.skipif(not CHAPTER.is_file(), reason="the tests are not in a checkout: there are no docs")
def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = PYTHON_BLOCK.findall(CHAPTER.read_text())
    make_session(tmp_path / "session.jsonl", 20)
    monkeypatch.chdir(tmp_path)
    for name in ("DISABLE_COMPACT", "DISABLE_AUTO_COMPACT", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"):
        monkeypatch.delenv(name, raising=False)
    exec(compile(example, str(CHAPTER), "exec"), {})
    size, formula, forecast, dollars = capsys.readouterr().out.splitlines()
    assert size == "39310 tokens, ok"
    assert formula == "auto = available - 13,000 = 167,000"
    assert forecast.startswith("Forecast(remaining_tokens=127690, growth_tokens_per_call=1059, calls=Range(low=")
    assert Decimal(dollars.removesuffix(" USD")) == Decimal("0.446")
