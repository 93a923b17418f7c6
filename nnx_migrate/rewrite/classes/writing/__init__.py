"""The text of the new class."""
