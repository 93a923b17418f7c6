"""The new statements as ``ast``, for the checks of what they read.

The checks judge what was written as Python will read it, with the same functions that read the
user's files; nothing that is written comes from here.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from nnx_migrate.edit.expressions import module_code


def tree_of(statements: Sequence[Any]) -> ast.Module:
    """The tree of new statements."""
    return ast.parse(module_code(statements))
