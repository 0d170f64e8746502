"""Cache health: how prompts are laid out, what changed between two requests, which calls lost their cache and why."""
