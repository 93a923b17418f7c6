"""Statements of the size interpreter: functions, blocks, branches and loops."""
