"""Layers whose native counterpart has other numbers or names."""
