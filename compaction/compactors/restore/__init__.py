"""What is put back after a compaction."""
