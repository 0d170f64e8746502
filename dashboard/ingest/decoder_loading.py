"""Loads what decoding takes, in the process that decoders are forked from: they share it instead of loading it each."""

import gc
import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that writes

from compaction.context.prices import price_of  # noqa: E402
from dashboard.ingest import decoders  # noqa: E402, F401

price_of("claude-opus-4-5", None)  # the first question for a price loads the tables, which takes longest of all
gc.freeze()  # what is loaded stays, and stays shared
