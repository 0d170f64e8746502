"""Compactions that Plimsoll does itself: previewed, paid for within a cap, run by workers, kept with all they lost."""
