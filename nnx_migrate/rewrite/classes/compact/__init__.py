"""Compact methods, helper methods and scope functions, split into ``__init__`` and the call."""
