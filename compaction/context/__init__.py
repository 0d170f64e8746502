"""How full a context window is: counting, windows, lines, prices and forecast; no cache rules, no compaction."""
