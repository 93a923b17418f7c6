"""What Linen's functional calls raise on migrated modules: Linen's classes, which are ValueErrors here.

They have Linen's names, which logs and tests show. flax 0.12.8: errors.py.
"""

from __future__ import annotations

from flax import errors


class _LinenError(ValueError):
    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)


class ScopeCollectionNotFound(_LinenError, errors.ScopeCollectionNotFound):
    """A variable is used of a collection that was not given."""


class ScopeParamNotFoundError(_LinenError, errors.ScopeParamNotFoundError):
    """A parameter is used that was not given."""


class ScopeVariableNotFoundError(_LinenError, errors.ScopeVariableNotFoundError):
    """Another variable is used that was not given."""


class ScopeParamShapeError(_LinenError, errors.ScopeParamShapeError):
    """A variable was given in another shape."""


class ModifyScopeVariableError(_LinenError, errors.ModifyScopeVariableError):
    """A call changed a variable of a collection that is not mutable."""


class InvalidRngError(_LinenError, errors.InvalidRngError):
    """No key was given for a stream."""
