"""What Plimsoll does by itself when a session crosses its auto-compact line, and the notes it takes before that."""
