"""Clearing tool results without a model call."""
