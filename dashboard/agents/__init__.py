"""What agent authors ask: may I go on, compact these messages, is my prompt laid out well. Nothing is stored here."""
