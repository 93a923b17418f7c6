"""Linen's lifted transforms for NNX modules."""
