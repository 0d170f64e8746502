"""Everything that makes a conversation smaller: micro, full, partial, from notes, and what comes back afterwards."""
