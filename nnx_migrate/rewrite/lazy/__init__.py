"""The lazy form: every reference to ``flax.linen`` becomes one to ``nnx_migrate.linen``.

Nothing has to be understood about a class for that: its text stays as it is but for what it
imports. `plan` decides about one file, `run` about all of them.
"""

from nnx_migrate.rewrite.lazy.plan import Plan, plan_file
from nnx_migrate.rewrite.lazy.text import mentions_linen, write

__all__ = ["Plan", "mentions_linen", "plan_file", "write"]
