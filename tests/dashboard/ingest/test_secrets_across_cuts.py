"""S8 where texts are cut: on no way in and at no length is half of a secret kept."""

import pytest

from dashboard.ingest.observed import Rules
from dashboard.ingest.redaction import Redactor
from dashboard.ingest.transcripts import find_redactor
from tests.dashboard.ingest.straddling_secrets import (
    FILLERS,
    LOOKED_AT,
    OWN_PATTERNS,
    SECRETS,
    WAYS,
    find_halves,
    lay_across,
    spell,
)

CASES = [(name, cut) for name, way in WAYS.items() for cut in way.cuts]
FEW = SECRETS[:: len(SECRETS) // 10]  # where a text is long


@pytest.mark.parametrize(("name", "cut"), CASES)
def test_no_half_of_a_secret_is_kept_where_a_text_is_cut(name: str, cut: int) -> None:
    secrets = SECRETS if cut <= 1_000 else FEW if cut <= LOOKED_AT else FEW[:3]
    texts = [lay_across(planted, cut, filler) for planted in secrets for filler in FILLERS]
    told = "".join(map(spell, WAYS[name].send(texts)))
    assert '"lines": [' in told
    assert find_halves(told, secrets) == []


@pytest.mark.parametrize("filler", [" ", "\n"])
def test_a_text_of_blanks_does_not_bring_the_end_of_what_is_looked_at_into_the_title(filler: str) -> None:
    redaction = find_redactor(Rules(keeps_content=True, digest_key=b"", own_patterns=OWN_PATTERNS))
    titles = [redaction.clean_title(lay_across(planted, LOOKED_AT, filler), 120) for planted in FEW]
    assert find_halves("".join(titles), FEW) == []


def test_what_is_looked_for_is_there_before_redaction() -> None:
    texts = [lay_across(planted, 120)[:120] for planted in SECRETS]
    cut_first = "".join(Redactor.with_own(OWN_PATTERNS).redact(text.encode()).data.decode() for text in texts)
    assert len(find_halves(cut_first)) > 20
