"""One request as the prompt cache sees it."""
