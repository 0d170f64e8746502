"""Tests of hooks: targets, sending, webhooks, what runs ask and tell."""
