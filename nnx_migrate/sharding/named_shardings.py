"""NamedShardings of a state: in its Variables (to zip with it), or bare (for jit)."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, Literal, TypeVar, get_args

import jax
from flax import nnx
from jax.sharding import AbstractMesh, Mesh, NamedSharding

from nnx_migrate.sharding.fitting import Misfit, refuse_other_words
from nnx_migrate.sharding.leaves import LeafShardings, leaf_shardings
from nnx_migrate.sharding.listing import (
    is_variable,
    names_without_axes,
    paths_of,
    should_have_names,
)
from nnx_migrate.sharding.resolve import Rules
from nnx_migrate.sharding.silent import SilentResolutionError

T = TypeVar("T")
Missing = Literal["replicate", "raise"]

log = logging.getLogger(__name__)


def construct_named_sharding(
    state: T,
    mesh: Mesh | AbstractMesh,
    rules: Rules | None = None,
    *,
    misfit: Misfit = "raise",
    missing: Missing = "replicate",
    strict: bool = False,
) -> T:
    """The state with a NamedSharding in place of every array: same Variables, same tree.

    The result zips with ``state`` in ``jax.tree.map`` over several trees, and is an
    ``in_shardings`` of ``jax.jit`` for it. Per variable (MaxText's #4205, made whole):

    1. The names are the first of the metadata ``out_sharding``, ``sharding_names``, ``sharding``,
       ``logical_axes`` that says something. A NamedSharding or PartitionSpec there is resolved
       already and stays as it is. A stacking axis that the variable records is inserted where the
       names lack it (:mod:`nnx_migrate.sharding.scan_axis`).
    2. Rules are the variable's own (``sharding_rules``), then ``rules``. Names are resolved by
       :func:`resolve_spec`. If there are no rules at all, names are mesh axes; those that are none
       are not sharded, and logged.
    3. A composite value (a quantised tensor) gets one sharding per array in it: arrays of its
       highest rank get the spec, without the dimensions in which they have size 1; arrays of lower
       rank are replicated. A value without arrays (``optax.MaskedNode``) stays as it is.
    4. The memory kind of an array is kept when it is not the devices' default.

    Missing is not replicated: arrays without names get ``P()`` because jit needs something, and
    parameters among them (and arrays without a Variable, unless scalar) are logged;
    :func:`unannotated` lists all of them.

    Args:
      state: concrete or abstract: nnx.State, a module, an ``nnx.Optimizer``, or any tree of
        Variables and arrays.
      mesh: its devices, or an AbstractMesh.
      rules: pairs (name, mesh axes). Without: the context's, set with Linen's or NNX's
        ``logical_axis_rules``.
      misfit: what to do with names beyond an array's rank and with sizes that the mesh axes do not
        divide: "raise", or "drop" the names and replicate the dimensions.
      missing: "raise" refuses parameters without names, and names without rules that are no mesh
        axes.
      strict: refuse rules that lose silently and names without a rule, all of them at once, each
        with its array.

    Raises:
      SilentResolutionError: with ``strict``; a ValueError.
      ValueError: names that do not fit, a stacking axis that is not where it is recorded, a name
        given twice; what is missing when ``missing`` is "raise"; other words for either.
      TypeError: a leaf that is no array, a variable with ``hijax=True``, or no mesh.
    """
    refuse_other_words("missing", missing, get_args(Missing))
    resolver = leaf_shardings(mesh, rules, misfit, strict)
    leaves, treedef = jax.tree.flatten(state, is_leaf=is_variable)
    shardings, bare = _shardings(state, leaves, resolver)
    if bare:
        paths = [paths_of(state)[position] for position in bare]
        _report("parameters without logical axis names", paths, missing)
    if not resolver.rules and (names := names_without_axes(state, mesh)):
        _report("names without rules that are no mesh axes", names, missing)
    result: T = jax.tree.unflatten(treedef, shardings)
    return result


def _shardings(
    state: Any, leaves: list[Any], resolver: LeafShardings
) -> tuple[list[Any], list[int]]:
    """The sharding of each leaf, and the positions of those that lack names; errors say the path."""
    shardings, bare, silent = [], [], []
    for position, leaf in enumerate(leaves):
        try:
            sharding, has_names = resolver.leaf(leaf)
        except SilentResolutionError as error:
            path = paths_of(state)[position]
            silent += [replace(one, array=path) for one in error.silent]
            continue
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{paths_of(state)[position]}: {error}") from error
        shardings.append(sharding)
        if not has_names and should_have_names(leaf):
            bare.append(position)
    if silent:
        raise SilentResolutionError(tuple(silent))
    return shardings, bare


def extract_named_sharding(tree: Any) -> Any:
    """The bare NamedShardings of :func:`construct_named_sharding`'s result, in the same containers.

    Every Variable is replaced by what it holds; a composite value stays a composite of shardings.

    Raises:
      TypeError: a leaf is not a NamedSharding.
    """

    def bare(leaf: Any) -> Any:
        value = leaf.get_raw_value() if isinstance(leaf, nnx.Variable) else leaf
        for part in jax.tree.leaves(value):
            if not isinstance(part, NamedSharding):
                raise TypeError(
                    f"expected NamedShardings, as construct_named_sharding gives them, found "
                    f"{type(part).__name__}"
                )
        return value

    return jax.tree.map(bare, tree, is_leaf=is_variable)


def _report(what: str, which: list[str], missing: Missing) -> None:
    paths_text = f"{', '.join(which[:10])}{', ...' if len(which) > 10 else ''}"
    if missing == "raise":
        raise ValueError(
            f"expected no {what}, found {len(which)}: {paths_text}. Annotate them (out_sharding=), set "
            "logical axis rules, or pass missing='replicate'."
        )
    log.warning("%s, replicated (%d): %s", what, len(which), paths_text)
