"""One session as observed from all sources: observations, their order, calls and what preceded them."""
