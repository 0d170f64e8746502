"""One request as the prompt cache sees it: its blocks, fingerprint, markers and layout, and how far changes reach."""
