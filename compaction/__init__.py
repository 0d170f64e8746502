"""What Plimsoll knows about context windows, compaction and prompt caches. No network, no clock, no files."""
