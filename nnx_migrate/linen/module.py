"""Linen's `flax.linen.module`: the base class of modules and what works on any module.

Also names that flax's module imports or keeps for itself, since code is found that takes them from
there: types for annotations, and the types of a module's field ``parent``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, Optional, TypeVar, Union, overload

import jax
import jax.numpy as jnp
from flax import errors, serialization, traverse_util
from flax.core import meta
from flax.core.frozen_dict import FrozenDict
from flax.core.scope import CollectionFilter, DenyList, union_filters
from flax.typing import FrozenVariableDict, PRNGKey, RNGSequences, VariableDict

from nnx_migrate.linen import kw_only_dataclasses
from nnx_migrate.linen.core.build import build, update, variables
from nnx_migrate.linen.core.calls import sown
from nnx_migrate.linen.core.context import CallInfo as _CallInfo
from nnx_migrate.linen.core.context import InterceptorContext, ThreadLocalStack, tabulate_context
from nnx_migrate.linen.core.context import context as _context
from nnx_migrate.linen.core.explicit import explicit, lazily
from nnx_migrate.linen.core.functional import (
    apply,
    capture_call_intermediates,
    init,
    init_with_output,
)
from nnx_migrate.linen.core.lifecycle import run_interceptors
from nnx_migrate.linen.core.module import CompactNameScope, Module, merge_param, share_scope
from nnx_migrate.linen.core.scope import Scope, TestScope
from nnx_migrate.linen.core.sizes.declaration import Size
from nnx_migrate.linen.core.state import UNSPECIFIED_PARENT as _unspecified_parent
from nnx_migrate.linen.core.state import ParentDescriptor, SetupState
from nnx_migrate.linen.core.state import UnspecifiedParent as _Sentinel
from nnx_migrate.linen.core.tree import freeze_attr as _freeze_attr
from nnx_migrate.linen.core.tree import get_suffix_value_pairs as _get_suffix_value_pairs
from nnx_migrate.linen.core.variable import Variable
from nnx_migrate.linen.core.variables import tuple_init, tuple_reduce
from nnx_migrate.linen.core.wrapping import (
    DescriptorWrapper,
    compact,
    compact_name_scope,
    nowrap,
    set_named_call,
    wrap_descriptor_once,
    wrap_method_once,
)
from nnx_migrate.linen.core.wrapping import get_unbound_fn as _get_unbound_fn
from nnx_migrate.linen.core.wrapping import local_method_names as _get_local_method_names
from nnx_migrate.linen.core.wrapping import wrap_descriptor_once as create_descriptor_wrapper

__all__ = [
    "Any",
    "Args",
    "Callable",
    "CollectionFilter",
    "CompactNameScope",
    "DenyList",
    "DescriptorWrapper",
    "FrozenDict",
    "FrozenVariableDict",
    "Interceptor",
    "InterceptorContext",
    "Iterable",
    "Iterator",
    "Kwargs",
    "Literal",
    "Mapping",
    "Module",
    "NextGetter",
    "Optional",
    "PRNGKey",
    "ParentDescriptor",
    "RNGSequences",
    "Scope",
    "SetupState",
    "Size",
    "TestScope",
    "ThreadLocalStack",
    "TypeVar",
    "Union",
    "Variable",
    "VariableDict",
    "_CallInfo",
    "_ParentType",
    "_Sentinel",
    "_context",
    "_freeze_attr",
    "_get_local_method_names",
    "_get_suffix_value_pairs",
    "_get_unbound_fn",
    "_unspecified_parent",
    "apply",
    "build",
    "capture_call_intermediates",
    "compact",
    "compact_name_scope",
    "contextlib",
    "create_descriptor_wrapper",
    "dataclasses",
    "disable_named_call",
    "enable_named_call",
    "errors",
    "explicit",
    "functools",
    "init",
    "init_with_output",
    "inspect",
    "intercept_methods",
    "jax",
    "jnp",
    "kw_only_dataclasses",
    "lazily",
    "merge_param",
    "meta",
    "nowrap",
    "overload",
    "override_named_call",
    "run_interceptors",
    "serialization",
    "share_scope",
    "sown",
    "tabulate_context",
    "traverse_util",
    "tuple_init",
    "tuple_reduce",
    "union_filters",
    "update",
    "variables",
    "wrap_descriptor_once",
    "wrap_method_once",
]

Args = tuple[Any]
Kwargs = dict[str, Any]
NextGetter = Callable[..., Any]
Interceptor = Callable[[NextGetter, Args, Kwargs, InterceptorContext], Any]
_ParentType = Union[Module, Scope, _Sentinel, None]  # noqa: UP007 - as flax has it


def enable_named_call() -> None:
    """Run methods under `jax.named_scope`, so that profiles name the modules."""
    set_named_call(True)


def disable_named_call() -> None:
    """Run methods without named scopes."""
    set_named_call(False)


@contextlib.contextmanager
def override_named_call(enable: bool = True) -> Iterator[None]:
    """Named scopes on or off for a while."""
    before = set_named_call(enable)
    try:
        yield
    finally:
        set_named_call(before)


@contextlib.contextmanager
def intercept_methods(interceptor: Any) -> Iterator[None]:
    """Run ``interceptor(next_fun, args, kwargs, context)`` in place of every method of a module.

    The last one entered is the innermost. Not intercepted: `nowrap` methods, fields, properties.
    """
    stack = _context.interceptors
    stack.push(interceptor)
    try:
        yield
    finally:
        stack.pop()
