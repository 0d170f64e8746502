"""Session notes, and compaction from them."""
