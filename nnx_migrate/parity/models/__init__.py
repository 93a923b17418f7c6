"""The built-in models: a Linen reference and what ``rewrite`` makes of it."""
