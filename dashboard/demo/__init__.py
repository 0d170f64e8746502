"""A fleet for looking around: invented sessions that come in by the real ways, marked, and removed in one go."""
