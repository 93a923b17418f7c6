"""The evidence file: what ``record`` saw of Linen calls, as an SQLite file without array values.

Standard library only, so that both halves can use it: ``record`` writes it with jax and flax
loaded, ``rewrite --evidence`` reads it without. :mod:`schema` is the file, :mod:`store` writes it,
:mod:`read` reads it, :mod:`values` is how fields and inputs are written down, :mod:`solve` finds the
expression of a size and :mod:`evaluate` computes one.
"""
