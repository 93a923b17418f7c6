"""The part of an evaluation that is the same for both stacks: trace, lower, compile, run.

A side hands in one function, ``apply(variables, args, kwargs) -> (outputs, mutated)``, over a
flat dict of arrays by Linen path. Arguments of the lowered programs are therefore named and
ordered alike on both sides.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nnx_migrate.parity.case import Arguments, ParityCase
from nnx_migrate.parity.evaluation.constant_key import constant_key
from nnx_migrate.parity.evaluation.results import Numbers
from nnx_migrate.parity.evaluation.running import as_run, describe_error, retraced
from nnx_migrate.parity.evaluation.unseen import Unseen, unseen
from nnx_migrate.parity.programs import canonical
from nnx_migrate.parity.values import (
    Arrays,
    fetch,
    is_array,
    is_inexact,
    named_leaves,
    same_bits,
    to_host,
)

Variables = dict[str, Any]
Apply = Callable[[Variables, tuple[Any, ...], dict[str, Any]], tuple[Any, Variables]]

# The two keys that stand in for every draw; any two do.
KEYS = (11, 29)
FORWARD, LOSS, GRADIENTS, COLLECTIONS = "forward", "loss", "gradients", "collections"
LOSS_AND_GRADIENTS = "loss_and_grad"


class NoLoss(Exception):
    """There is nothing to differentiate; the message says why."""


@dataclass
class Measured:
    """What running one side's programs gave; filled stage by stage."""

    first: Numbers = field(default_factory=Numbers)
    second: Numbers = field(default_factory=Numbers)
    programs: dict[str, str] = field(default_factory=dict)
    unseen: dict[str, tuple[Unseen, ...]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    raised: dict[str, Exception] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    control: list[str] = field(default_factory=list)
    control_leaves: int = 0


def measure(
    case: ParityCase,
    apply: Apply,
    variables: Mapping[str, Any],
    arguments: Arguments,
    arrays: Sequence[Any],
    *,
    control: bool,
) -> Measured:
    """Run forward, loss and gradients of one side under both keys; with ``control``, twice.

    A stage that raises is recorded under its name and the next one still runs.
    """
    result = Measured()
    operands = (dict(variables), list(arrays))
    for name, stage in ((FORWARD, _forward), (LOSS_AND_GRADIENTS, _loss_and_gradients)):
        try:
            retraced(functools.partial(stage, case, apply, arguments, operands, result, control))
        except NoLoss as reason:
            result.skipped |= {LOSS: str(reason), GRADIENTS: str(reason)}
        except Exception as error:  # noqa: BLE001 (any error of the model is a finding)
            failed = (name,) if name == FORWARD else (LOSS, GRADIENTS)
            result.errors |= dict.fromkeys(failed, describe_error(error))
            result.raised |= dict.fromkeys(failed, error)
    return result


def _forward(
    case: ParityCase,
    apply: Apply,
    arguments: Arguments,
    operands: Any,
    result: Measured,
    twice: bool,
) -> None:
    structures: list[str] = []
    plain: list[dict[str, str]] = []

    def run(variables: Variables, key: Any, arrays: Sequence[Any]) -> Any:
        with constant_key(key):
            outputs, mutated = apply(variables, *arguments.rebuild(arrays))
        structures.append(structure(outputs))
        plain.append(_plain(outputs))
        # A list, so that names of containers never decide the order of results.
        names, leaves = _array_outputs(outputs)
        paths.append(names)
        return leaves, mutated

    paths: list[list[str]] = []
    runs, differences, count = _execute(case, FORWARD, run, operands, result, twice)
    for name, (leaves, mutated) in zip(("first", "second"), runs, strict=True):
        numbers = Numbers(
            structure=structures[-1],
            outputs=fetch(dict(zip(paths[-1], leaves, strict=True))),
            collections=fetch(mutated),
            plain=plain[-1],
        )
        setattr(result, name, numbers)
    result.control += [f"forward: {line}" for line in differences]
    again = any(one != plain[-1] for one in plain) or len({*structures}) > 1
    result.control += ["forward: the values of Python differ"] if again else []
    result.control_leaves += count + (len(plain[-1]) if twice else 0)


def _loss_and_gradients(
    case: ParityCase,
    apply: Apply,
    arguments: Arguments,
    operands: Any,
    result: Measured,
    twice: bool,
) -> None:
    variables, arrays = operands
    run, parts = differentiated(case, apply, arguments, variables)
    runs, differences, count = _execute(
        case, LOSS_AND_GRADIENTS, run, (parts, arrays), result, twice
    )
    for name, (value, gradients) in zip(("first", "second"), runs, strict=True):
        numbers = dataclasses.replace(
            getattr(result, name), loss=fetch({"loss": value}), gradients=fetch(gradients)
        )
        setattr(result, name, numbers)
    result.control += [f"loss and gradients: {line}" for line in differences]
    result.control_leaves += count


def differentiated(
    case: ParityCase, apply: Apply, arguments: Arguments, variables: Mapping[str, Any]
) -> tuple[Callable[..., Any], tuple[Variables, Variables]]:
    """Return ``run(parts, key, arrays) -> (loss, gradients)``, and the variables in those parts.

    The first part is what gradients are taken of, floating-point parameters. Raises NoLoss when
    there are none.
    """
    trained = {
        path: value
        for path, value in variables.items()
        if path.startswith("params/") and is_inexact(value.dtype)
    }
    if not trained:
        raise NoLoss("the model has no floating-point parameters")
    others = {path: value for path, value in variables.items() if path not in trained}

    def loss(trained: Variables, others: Variables, key: Any, arrays: Sequence[Any]) -> Any:
        args, kwargs = arguments.rebuild(arrays)
        with constant_key(key):
            outputs, _ = apply({**trained, **others}, args, kwargs)
            return default_loss(outputs) if case.loss is None else case.loss(outputs, *args)

    def run(parts: tuple[Variables, Variables], key: Any, arrays: Sequence[Any]) -> Any:
        return jax.value_and_grad(loss)(*parts, key, arrays)

    return run, (trained, others)


def _execute(
    case: ParityCase,
    name: str,
    run: Callable[..., Any],
    operands: Any,
    result: Measured,
    twice: bool,
) -> tuple[list[Any], list[str], int]:
    """Run ``run(variables, key, arrays)`` under both keys, and again for control.

    Its program is kept under ``name``; a case that is not compiled has none.
    """
    variables, arrays = operands
    keys = [jax.random.key(seed) for seed in KEYS]
    call, differences = run, []
    if case.compiled:
        traced = jax.jit(run).trace(variables, keys[0], arrays)
        lowered = traced.lower()
        result.programs[name] = canonical.canonical(lowered.as_text())
        result.unseen[name] = unseen(traced.jaxpr.jaxpr)
        call = lowered.compile()
    runs = [call(variables, key, arrays) for key in keys]
    if not twice:
        return runs, [], 0
    if case.compiled:
        # A second, independent trace; the same text compiles to the same program, so it runs again.
        lowered = jax.jit(lambda *a: run(*a)).lower(variables, keys[0], arrays)
        text, again = result.programs[name], canonical.canonical(lowered.as_text())
        differences = [] if again == text else [canonical.first_line_apart(text, again)]
    left = fetch(named_leaves(runs[0])[0])
    right = fetch(named_leaves(call(variables, keys[0], arrays))[0])
    differences += [f"{path} differs" for path in left if not same_bits(left[path], right[path])]
    return runs, differences, len(left)


def _array_outputs(outputs: Any) -> tuple[list[str], list[Any]]:
    leaves, _ = named_leaves(outputs)
    arrays = {path: value for path, value in leaves.items() if is_array(value)}
    return list(arrays), list(arrays.values())


def default_loss(outputs: Any) -> Any:
    """A scalar that depends on every element of every float output, each with its own weight.

    ``sum(w * (x * x + x)) / n`` in float32; the weights are not constant, so that a permutation
    shows, and are computed in the program, so that they do not swell its text.
    """
    total = jnp.zeros((), jnp.float32)
    used = False
    for number, value in enumerate(_array_outputs(outputs)[1]):
        if not is_inexact(value.dtype) or not value.size:
            continue
        used = True
        if jnp.issubdtype(value.dtype, jnp.complexfloating):
            value = value.real + 0.5 * value.imag
        value = value.astype(jnp.float32)
        count = np.float32(value.size)
        places = jnp.arange(value.size, dtype=jnp.float32).reshape(value.shape)
        weights = 1 + 0.5 * jnp.cos(places * 0.7 + np.float32(number))
        total = total + jnp.sum(weights * (value * value + value)) / count
    if not used:
        raise NoLoss("the model has no floating-point output and the case no loss")
    return total


def structure(outputs: Any) -> str:
    """Return the container types of a pytree, with ``*`` for arrays and values for the rest."""
    if outputs is None:
        return "None"
    if is_array(outputs):
        return "*"
    node = jax.tree_util.default_registry.flatten_one_level(outputs)
    if node is None:
        return repr(outputs)
    children = ", ".join(structure(child) for child in node[0])
    name = type(outputs).__name__
    # Linen returned FrozenDict where plain dicts are used today: the same container to callers.
    return f"{'dict' if name == 'FrozenDict' else name}({children})"


def _plain(outputs: Any) -> dict[str, str]:
    """Values of Python in a pytree, of the kinds whose text tells all; None is none of them."""
    kinds = (bool, int, float, complex, str, bytes, np.generic, np.dtype, enum.Enum)
    leaves, _ = named_leaves(outputs)
    return {path: repr(leaf) for path, leaf in leaves.items() if isinstance(leaf, kinds)}


def initialise(
    case: ParityCase, build: Callable[[], Variables], constant: bool
) -> tuple[Arrays, dict[str, Any]]:
    """Run an initialiser as the case runs; return its values on the host and as they are."""

    def run(key: Any) -> Variables:
        if not constant:
            return build()
        with constant_key(key):
            return build()

    values = retraced(lambda: as_run(case, run)(jax.random.key(KEYS[0])))
    return fetch(values), values


def repetitions(
    values: Mapping[str, Any], others: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """Name variables whose initial values repeat although they are random.

    Two variables with the same bits, or a stack whose slices along its first axis all agree:
    the sign of sites that share a key. Random is what differs from ``others``, the values under
    other keys; without ``others``, only stacks are named.
    """
    found: list[str] = []
    seen: dict[tuple[Any, ...], str] = {}
    for path, value in sorted(values.items()):
        array = to_host(value)
        if not is_inexact(array.dtype) or array.size < 2 or bool(np.all(array == array.flat[0])):
            continue
        if others is not None and path in others and same_bits(array, others[path]):
            continue
        fingerprint = (array.shape, str(array.dtype), array.tobytes())
        if others is not None and fingerprint in seen:
            found.append(f"{path} = {seen[fingerprint]}")
        seen.setdefault(fingerprint, path)
        if array.ndim > 1 and array.shape[0] > 1 and bool(np.all(array == array[:1])):
            found.append(f"{path}: every slice along axis 0 is the same")
    return tuple(found)
