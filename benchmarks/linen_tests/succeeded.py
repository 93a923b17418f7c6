"""A pytest plugin: which module classes of the test files take part in a call that succeeds.

``python -m pytest -p benchmarks.linen_tests.succeeded tests/linen`` adds one line, ``path:line``, to the
file that ``LINEN_TESTS_SUCCEEDED`` names for each class statement of which a method ran inside an
outermost ``init`` or ``apply`` that returned. Deliberately independent of ``nnx_migrate``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

from flax import linen

FILE = "LINEN_TESTS_SUCCEEDED"

_inside: list[type] = []  # classes called since the outermost call began
_succeeded: set[type] = set()
_depth = 0


def pytest_configure(config: Any) -> None:
    """Wrap how Linen calls a module's methods, for this process."""
    original: Callable[..., Any] = linen.Module._call_wrapped_method

    def counted(self: linen.Module, fun: Any, args: Any, kwargs: Any) -> Any:
        global _depth
        if _depth == 0:
            _inside.clear()
        _inside.append(type(self))
        _depth += 1
        try:
            result = original(self, fun, args, kwargs)
        finally:
            _depth -= 1
        if _depth == 0:
            _succeeded.update(_inside)
        return result

    linen.Module._call_wrapped_method = counted  # type: ignore[method-assign]


def pytest_unconfigure(config: Any) -> None:
    """Write the place of each class that succeeded."""
    lines = sorted({place for cls in _succeeded if (place := _place(cls)) is not None})
    with Path(os.environ[FILE]).open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def _place(cls: type) -> str | None:
    """``file:line`` of a class's first method; of a class that a transform made, its base's."""
    for base in cls.__mro__:
        codes = [code for value in vars(base).values() if (code := _code(value, base)) is not None]
        if base.__module__.startswith("flax."):
            return None
        if codes:
            first = min(codes, key=lambda code: code.co_firstlineno)
            return f"{Path(first.co_filename).name}:{first.co_firstlineno}"
    return None


def _code(value: Any, cls: type) -> CodeType | None:
    """The code of a method that the class statement itself contains."""
    value = getattr(value, "fget", value)
    while hasattr(value, "__wrapped__"):
        value = value.__wrapped__
    code = getattr(value, "__code__", None)
    if isinstance(code, CodeType) and code.co_qualname == f"{cls.__qualname__}.{code.co_name}":
        return code
    return None
