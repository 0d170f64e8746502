"""`plimsoll watch`: a developer's machine reads its transcripts and sends them to a server. No Django."""
