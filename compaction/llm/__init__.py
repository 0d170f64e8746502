"""What differs by language model: its name (names), its facts (table, found by lookup) and its prices (prices)."""
