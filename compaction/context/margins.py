"""Margins between the thresholds, in tokens, and the tolerances of comparing them with what was observed."""

from enum import StrEnum

# The client's own distances, measured at 167k/147k/177k of 200k and 967k/947k/977k of 1M.
AUTO_MARGIN_TOKENS = 13_000
WARNING_MARGIN_TOKENS = 20_000
ERROR_MARGIN_TOKENS = 20_000
BLOCKING_MARGIN_TOKENS = 3_000
# The preset for teams that want an earlier warning.
EARLY_WARNING_MARGIN_TOKENS = 40_000
EARLY_ERROR_MARGIN_TOKENS = 20_000
# With one response so far the client compacts only at the model's context minus this (977k and 177k measured).
ONE_RESPONSE_MARGIN_TOKENS = 23_000

# The client's cap for the output of a summary (p99.99 of summaries is about 17k).
MAX_SUMMARY_TOKENS = 20_000
# The client reserves room for a summary. Measured: 2.1.25 and later compact at 167k of 200k and 967k of 1M.
RESERVE_CAP_TOKENS = MAX_SUMMARY_TOKENS
# Recorded: 33 of 35 automatic compactions up to 2.1.20 happened at 155.0k to 158.2k of 200k.
OLD_RESERVE_TOKENS = 32_000
LAST_VERSION_WITH_OLD_RESERVE = (2, 1, 20)

# Observed against configured: tool results that arrive after the last response explain up to 26k of lateness.
EARLY_DRIFT_PERCENT = 5
LATE_DRIFT_TOKENS = 30_000


class Preset(StrEnum):
    """Named sets of margins: the client's own, or an earlier warning."""

    CLIENT = "client"
    EARLY = "early"
