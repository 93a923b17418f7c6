"""Linen's collections as NNX variables."""
