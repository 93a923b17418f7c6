"""Rewrite pinned public packages and compare what their models compute before and after."""
