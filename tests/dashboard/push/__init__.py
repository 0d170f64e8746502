"""`plimsoll watch` before the product itself."""
