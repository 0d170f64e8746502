"""Hooks of teams and of the machine's owner: whom a compaction asks, who is told of it, and how that is sent safely."""
