"""A summary selected from the conversation, without a model."""
