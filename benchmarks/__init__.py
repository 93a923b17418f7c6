"""Measurements on real code; not part of the installed package."""
