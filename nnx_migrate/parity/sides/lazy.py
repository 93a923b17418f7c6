"""Lazy modules on the NNX side: they are built by the case's first call, under Linen's paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flax import nnx

from nnx_migrate import linen as lazy_linen
from nnx_migrate.nn.variables.sharing import definitions_in
from nnx_migrate.parity.case import ParityCase, linen_init_context
from nnx_migrate.parity.evaluation.measure import Variables
from nnx_migrate.parity.values import named_leaves


def is_lazy(module: Any) -> bool:
    """Whether a module is of the lazy form, built or not."""
    return issubclass(type(module), lazy_linen.Module)  # an instance is a Linen module, too


def is_unbuilt(module: Any) -> bool:
    """Whether a lazy module, or one inside of an explicit module, still has to be built."""
    return bool(definitions_in(module))


def build(case: ParityCase, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A lazy module, or an explicit one that holds such, with the variables that the call makes from
    the case's keys.

    What the call sows into the case's collections is among them: Linen's `apply` starts from it, too.
    """
    copy = module.clone(_deep_clone=True) if is_lazy(module) else module
    rngs = {name: case.key_of(name) for name in case.streams}
    options: Any = {"method": case.method, "keep_sown": case.collections}
    with linen_init_context(case):
        return lazy_linen.build(copy, *args, rngs=rngs, **options, **kwargs)


def nnx_paths(module: nnx.Module) -> dict[str, str]:
    """Linen path -> NNX path, of variables whose name NNX's graph could not keep."""
    found = {}
    for path, node in nnx.iter_graph(module):
        if is_lazy(node) and node._nnm_is_built:
            for key, attribute in node._nnm_keys().items():
                name = node._nnm_attributes[attribute][1]
                if key != name:
                    prefix = [str(step) for step in path]
                    found["/".join([*prefix, name])] = "/".join([*prefix, key])
    return found


def leaves_of(tree: Mapping[str, Any]) -> Variables:
    """What was sown, by path, as the outputs of `apply` list it."""
    leaves, _ = named_leaves(dict(tree))
    return leaves
