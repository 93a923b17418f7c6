"""Whether arrays of a project may have another floating type than float32, as its text says.

Linen's and NNX's layers cast at other places. In float32 alone that is the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

# Parts of names and words: jnp.bfloat16, "jax_enable_x64", half_precision.
_OTHERS = (
    *("float16", "bfloat16", "float64", "float8", "complex64", "complex128", "bf16", "fp16"),
    *("x64", "mixed_precision", "half_precision", "dtype_bits"),
)
_WHOLE = frozenset(
    {"jmp", "jnp.half", "np.half", "numpy.half", "jnp.double", "np.double", "numpy.double"}
)
_PLAIN = frozenset(
    {
        "float32",
        "bool",
        "bool_",
        "int",
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    }
)
_DTYPES = frozenset({"dtype", "param_dtype"})


@lru_cache(maxsize=2)  # every layer asks
def may_mix_dtypes(project: Project) -> bool:
    """Whether code names a floating type other than float32, or takes one from a field or an argument."""
    return any(
        _is_other(word) for module in project.modules.values() for word in _words(module.tree)
    ) or any(
        _is_open(node.value)
        for module in project.modules.values()
        for node in walk(module.tree)
        if isinstance(node, ast.keyword) and node.arg in _DTYPES
    )


def _words(tree: ast.AST) -> Iterator[str]:
    for node in walk(tree):
        match node:
            case ast.Name(id=word) | ast.arg(arg=word) | ast.alias(name=word):
                yield word
            case ast.keyword(arg=str() as word) | ast.Constant(value=str() as word):
                yield word
            case ast.Attribute(value=ast.Name(id=owner), attr=attr):
                yield f"{owner}.{attr}"
            case ast.Attribute(attr=attr):
                yield attr


def _is_other(word: str) -> bool:
    return word in _WHOLE or any(one in word.lower() for one in _OTHERS)


def _is_open(value: ast.expr) -> bool:
    """Whether a ``dtype=`` may be any: ``self.dtype``; that of an array at hand (``x.dtype``) brings no other."""
    match value:
        case ast.Constant(value=None):
            return False
        case ast.Constant(value=str() as name) | ast.Attribute(attr=name) if name in _PLAIN:
            return False
        case ast.Attribute(value=ast.Name(id=owner), attr="dtype"):
            return owner == "self"
        case ast.Name(id=name):
            return name not in _PLAIN
    return True
