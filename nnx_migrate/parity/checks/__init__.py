"""Comparing what two sides yielded; nothing here knows Linen or NNX."""
