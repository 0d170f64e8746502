"""What happened in a stretch of conversation, read once."""
