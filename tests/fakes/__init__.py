"""Real servers on the loopback that stand in for services nobody should call from a test."""
