"""Everything that makes a conversation smaller: clearing, summaries, notes, and what is restored afterwards."""
