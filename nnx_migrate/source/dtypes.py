"""Whether arrays of a project may have another floating type than float32, as its text says.

Linen's and NNX's layers cast at other places. In float32 alone that is the same.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache

from nnx_migrate.source.names import last_name
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import each, walk

# Parts of names and words: jnp.bfloat16, "jax_enable_x64", half_precision, jnp.fft; "64x64" is a size.
_OTHER = re.compile(
    r"float(16|64|8|4)|complex(64|128)|bf16|fp16|fp8|fft"
    r"|(?<![0-9])x64|(mixed|half)_precision|dtype_bits"
)
# Words that mean another type as they are; a local may be called ``half`` or ``double``.
_WHOLE = frozenset({"jmp", "complex", "complex_", "cdouble", "csingle", "longdouble"})
_SPELLED = _WHOLE | {"half", "double", "eig", "eigvals"}
_PLAIN = frozenset(
    {
        *("float32", "single", "bool", "bool_", "int", "int_", "uint"),
        "float",  # without x64 that is float32
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    }
)
# Functions whose argument (by position) is a dtype, whatever its name.
_CASTS = {"astype": 0, "view": 0, "dtype": 0, "convert_element_type": 1}
_OF_ARRAYS = frozenset(
    {
        *("shape", "ndim", "size", "dtype", "T", "mT", "at", "real", "imag", "astype", "reshape"),
        *("transpose", "swapaxes", "mean", "sum", "max", "min", "squeeze", "ravel", "flatten"),
        *("var", "std", "dot", "conj", "repeat", "item", "tolist", "block_until_ready"),
    }
)


@lru_cache(maxsize=2)  # every layer asks
def may_mix_dtypes(project: Project) -> bool:
    """Whether code names a floating type other than float32, or takes one from where none is written."""
    trees = [module.tree for module in project.modules.values()]
    return any(any(_names_other(tree)) or any(_takes_any(tree)) for tree in trees)


def _names_other(tree: ast.AST) -> Iterator[bool]:
    for node in walk(tree):
        match node:
            case ast.Name(id=word) | ast.arg(arg=word) | ast.keyword(arg=str() as word):
                yield _is_other(word, _WHOLE)
            case ast.alias(name=word) | ast.Attribute(attr=word):
                yield _is_other(word, _SPELLED)
            case ast.ImportFrom(module=str() as word) | ast.Constant(value=str() as word):
                yield _is_other(word, _SPELLED)
            case ast.Constant(value=complex()):
                yield True


def _is_other(word: str, whole: frozenset[str]) -> bool:
    return word in whole or _OTHER.search(word.lower()) is not None


def _takes_any(tree: ast.AST) -> Iterator[bool]:
    """Of each dtype that is handed to a call, whether it may be any."""
    arrays = _arrays(tree)
    for call in each(tree, ast.Call):
        place = _CASTS.get(last_name(call.func))
        for index, value in enumerate(call.args):
            if index == place or "dtype" in last_name(value):
                yield _is_open(value, arrays)
        for keyword in call.keywords:
            if "dtype" in (keyword.arg or "") or "dtype" in last_name(keyword.value):
                yield _is_open(keyword.value, arrays)


def _is_open(value: ast.expr, arrays: frozenset[str]) -> bool:
    """Whether a dtype may be any: ``cfg.dtype``; that of an array at hand (``x.dtype``) brings no other."""
    match value:
        case ast.Constant(value=None):
            return False
        case ast.Constant(value=str() as name) | ast.Name(id=name) | ast.Attribute(attr=name) if (
            name in _PLAIN
        ):
            return False
        case ast.Attribute(value=owner, attr="dtype"):
            return last_name(owner) not in arrays
        case ast.IfExp(body=body, orelse=other):
            return _is_open(body, arrays) or _is_open(other, arrays)
    return True


def _arrays(tree: ast.AST) -> frozenset[str]:
    """Names that are used as arrays and as nothing else: of ``cfg.dtype`` alone nobody knows."""
    attributes: dict[str, set[str]] = defaultdict(set)
    used = set()
    for node in walk(tree):
        match node:
            case ast.Attribute(value=owner, attr=name):
                attributes[last_name(owner)].add(name)
            case ast.BinOp(left=left, right=right):
                used |= {last_name(left), last_name(right)}
            case ast.Call(func=ast.Call(), args=args):  # nn.Dense(4)(x)
                used |= {last_name(one) for one in args}
    return frozenset(
        name
        for name, read in attributes.items()
        if name and read <= _OF_ARRAYS and (name in used or read != {"dtype"})
    )
