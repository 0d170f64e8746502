"""How long what is stored stays: retention by age, deletion of sessions, and which rows each of them reaches."""
