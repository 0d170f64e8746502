"""The decoder of OTLP: bytes of an export in, observed sessions out. No Django here."""
