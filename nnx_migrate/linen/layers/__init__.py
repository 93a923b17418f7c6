"""Linen's layers as our own modules, one kind per file.

Users import them from the modules named as flax's (``nnx_migrate.linen.linear`` and so on), which list
what is public. Fields, defaults, names of submodules and variables and the order of operations are
Linen's (flax 0.12.8 and 0.12.12, which agree): all that a checkpoint, a seed or a compiled program
shows. The arithmetic that explicit modules share is in ``nnx_migrate.numerics``.

Helper methods that Linen's class lacks are ``nowrap``: who captures or intercepts calls sees Linen's methods.
"""
