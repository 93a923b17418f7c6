"""Submodules that stand at another path than the one Linen would give them by itself."""
