"""What differs by language model: spellings of its name, what it holds, caches and costs. Knows no transcript."""
