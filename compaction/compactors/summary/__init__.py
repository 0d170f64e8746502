"""Asking a model for a summary."""
