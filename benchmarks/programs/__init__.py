"""Flax's nine Linen example programs, run before and after the rewrite."""
