"""Expressions of the size interpreter: what each ``ast`` node means on abstract values."""
