"""What a compaction lost, as rows keep it: the client's compactions and our own alike, so that one page shows both."""

from compaction.compactors.losses import LossReport

LONGEST_LIST = 200  # findings kept of one compaction; the score counts all


def describe_losses(report: LossReport) -> dict[str, object]:
    return {
        "parts": [[part.part.value, part.weight, part.found, part.present] for part in report.parts],
        "lost_count": len(report.lost),
        "lost": [
            # PostgreSQL takes no NUL, not in JSON either.
            {"part": finding.part.value, "quote": finding.quote.replace("\x00", ""), "entry": finding.entry_uuid}
            for finding in report.lost[:LONGEST_LIST]
        ],
    }
