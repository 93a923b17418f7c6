"""The part of an evaluation that is the same for both stacks: trace, lower, compile, run.

A side hands in one function, ``apply(variables, args, kwargs) -> (outputs, mutated)``, over a
flat dict of arrays by Linen path. Arguments of the lowered programs are therefore named and
ordered alike on both sides.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from nnx_migrate.parity.case import Arguments, ParityCase
from nnx_migrate.parity.evaluation.constant_key import constant_key
from nnx_migrate.parity.evaluation.distinct_keys import distinct_keys
from nnx_migrate.parity.evaluation.other_inputs import other_inputs
from nnx_migrate.parity.evaluation.outputs import (
    NoLoss,
    array_outputs,
    loss_of,
    plain_values,
    structure,
)
from nnx_migrate.parity.evaluation.results import Numbers
from nnx_migrate.parity.evaluation.running import describe_error, retraced
from nnx_migrate.parity.evaluation.unseen import Unseen, note_program
from nnx_migrate.parity.programs import canonical
from nnx_migrate.parity.values import (
    fetch,
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
LOSS_AND_GRADIENTS, INPUT_GRADIENTS = "loss_and_grad", "input_gradients"


@dataclass
class Measured:
    """What running one side's programs gave; filled stage by stage."""

    first: Numbers = field(default_factory=Numbers)
    second: Numbers = field(default_factory=Numbers)
    others: dict[str, Numbers] = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)
    located: dict[str, str] = field(default_factory=dict)
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
    for name, stage in ((FORWARD, measure_forward), (LOSS_AND_GRADIENTS, _loss_and_gradients)):
        try:
            retraced(functools.partial(stage, case, apply, arguments, operands, result, control))
        except NoLoss as reason:
            result.skipped |= {LOSS: str(reason), GRADIENTS: str(reason)}
        except Exception as error:  # noqa: BLE001 (any error of the model is a finding)
            failed = (name,) if name == FORWARD else (LOSS, GRADIENTS)
            result.errors |= dict.fromkeys(failed, describe_error(error))
            result.raised |= dict.fromkeys(failed, error)
    measure_input_gradients(case, apply, arguments, operands, result, control)
    return result


@dataclass
class Seen:
    """What tracing a call shows beside its arrays: an entry per trace, and the streams drawn from."""

    structures: list[str] = field(default_factory=list)
    plain: list[dict[str, str]] = field(default_factory=list)
    paths: list[list[str]] = field(default_factory=list)
    drawn: set[str] = field(default_factory=set)
    keys: int | None = None

    def numbers(self, variables: Mapping[str, Any], leaves: list[Any], mutated: Any) -> Numbers:
        """What a run gave: ``leaves`` are its outputs, ``mutated`` the collections it returned."""
        collections = fetch(mutated)
        unchanged = [
            path
            for path, value in collections.items()
            if path in variables and same_bits(value, to_host(variables[path]))
        ]
        return Numbers(
            structure=self.structures[-1],
            outputs=fetch(dict(zip(self.paths[-1], leaves, strict=True))),
            collections=collections,
            plain=self.plain[-1],
            unchanged=tuple(unchanged),
            drawn=tuple(sorted(self.drawn)),
            keys=self.keys,
        )


def called(
    apply: Apply, arguments: Arguments, seen: Seen
) -> Callable[..., tuple[Any, list[Any], Variables]]:
    """Return ``call(variables, key, arrays) -> (outputs, their arrays, what it changed)``."""

    def call(variables: Variables, key: Any, arrays: Sequence[Any]) -> Any:
        with constant_key(key, seen.drawn):
            outputs, mutated = apply(variables, *arguments.rebuild(arrays))
        seen.structures.append(structure(outputs))
        seen.plain.append(plain_values(outputs))
        # A list, so that names of containers never decide the order of results.
        names, leaves = array_outputs(outputs)
        seen.paths.append(names)
        return outputs, leaves, mutated

    return call


def measure_forward(
    case: ParityCase,
    apply: Apply,
    arguments: Arguments,
    operands: Any,
    result: Measured,
    twice: bool,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Run the call alone: outputs and collections. ``operands`` are variables and arrays."""
    seen = Seen()
    call = called(apply, arguments, seen)

    def run(variables: Variables, key: Any, arrays: Sequence[Any]) -> Any:
        return call(variables, key, arrays)[1:]

    others = other_inputs(operands[1])
    runs, differences, count = execute(
        case, FORWARD, run, operands, result, twice, options, tuple(others.values())
    )
    seen.keys = keys_of(case, apply, arguments, operands, seen.drawn)
    found = [seen.numbers(operands[0], leaves, mutated) for leaves, mutated in runs]
    result.first, result.second = found[: len(KEYS)]
    result.others = dict(zip(others, found[len(KEYS) :], strict=False))
    plain = seen.plain
    result.control += [f"forward: {line}" for line in differences]
    again = any(one != plain[-1] for one in plain) or len({*seen.structures}) > 1
    result.control += ["forward: the values of Python differ"] if again else []
    result.control_leaves += count + (len(plain[-1]) if twice else 0)


def keys_of(
    case: ParityCase,
    apply: Apply,
    arguments: Arguments,
    operands: Any,
    drawn: Collection[str],
) -> int | None:
    """Count the different keys of a call under real ones; None: not compiled, or on several hosts."""
    if not case.compiled or jax.process_count() > 1:
        return None
    if not drawn:
        return 0

    def call(operands: Any) -> Any:
        variables, arrays = operands
        outputs, mutated = apply(variables, *arguments.rebuild(arrays))
        return array_outputs(outputs)[1], mutated

    return distinct_keys(call, operands)


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
    runs, differences, count = execute(
        case, LOSS_AND_GRADIENTS, run, (parts, arrays), result, twice
    )
    for name, (value, gradients) in zip(("first", "second"), runs, strict=True):
        numbers = dataclasses.replace(
            getattr(result, name), loss=fetch({"loss": value}), gradients=fetch(gradients)
        )
        setattr(result, name, numbers)
    result.control += [f"loss and gradients: {line}" for line in differences]
    result.control_leaves += count


def measure_input_gradients(
    case: ParityCase,
    apply: Apply,
    arguments: Arguments,
    operands: Any,
    result: Measured,
    twice: bool,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Differentiate the loss by the float inputs, where there are any and it could be computed.

    A program of its own, as a model that trains need not be differentiable there.
    """
    variables, arrays = operands
    places = [place for place, value in enumerate(arrays) if is_inexact(value.dtype)]
    if not places or LOSS in result.errors:
        return

    def loss(given: Sequence[Any], variables: Variables, key: Any, arrays: Sequence[Any]) -> Any:
        chosen = dict(zip(places, given, strict=True))
        args, kwargs = arguments.rebuild([chosen.get(n, one) for n, one in enumerate(arrays)])
        with constant_key(key):
            outputs, _ = apply(variables, args, kwargs)
            return loss_of(case, outputs, args)

    def run(variables: Variables, key: Any, arrays: Sequence[Any]) -> Any:
        return jax.grad(loss)([arrays[place] for place in places], variables, key, arrays)

    stage = functools.partial(
        execute, case, INPUT_GRADIENTS, run, (dict(variables), arrays), result, twice, options
    )
    try:
        runs, differences, _ = retraced(stage)
    except NoLoss:
        return  # the stage `loss` says why
    except Exception as error:  # noqa: BLE001 (any error of the model is a finding)
        result.errors[INPUT_GRADIENTS] = describe_error(error)
        return
    for name, gradients in zip(("first", "second"), runs, strict=True):
        named = {f"inputs/{n}": one for n, one in zip(places, gradients, strict=True)}
        numbers = dataclasses.replace(getattr(result, name), input_gradients=fetch(named))
        setattr(result, name, numbers)
    result.control += [f"gradients of inputs: {line}" for line in differences]


def parts_of(variables: Mapping[str, Any]) -> tuple[Variables, Variables]:
    """Return what gradients are taken of, floating-point parameters, and the other variables.

    Raises NoLoss when there are no such parameters.
    """
    trained = {
        path: value
        for path, value in variables.items()
        if path.startswith("params/") and is_inexact(value.dtype)
    }
    if not trained:
        raise NoLoss("the model has no floating-point parameters")
    return trained, {path: value for path, value in variables.items() if path not in trained}


def differentiated(
    case: ParityCase, apply: Apply, arguments: Arguments, variables: Mapping[str, Any]
) -> tuple[Callable[..., Any], tuple[Variables, Variables]]:
    """Return ``run(parts, key, arrays) -> (loss, gradients)``, and the variables in those parts.

    Raises NoLoss when there is nothing that gradients are taken of.
    """
    parts = parts_of(variables)

    def loss(trained: Variables, others: Variables, key: Any, arrays: Sequence[Any]) -> Any:
        args, kwargs = arguments.rebuild(arrays)
        with constant_key(key):
            outputs, _ = apply({**trained, **others}, args, kwargs)
            return loss_of(case, outputs, args)

    def run(parts: tuple[Variables, Variables], key: Any, arrays: Sequence[Any]) -> Any:
        return jax.value_and_grad(loss)(*parts, key, arrays)

    return run, parts


def execute(
    case: ParityCase,
    name: str,
    run: Callable[..., Any],
    operands: Any,
    result: Measured,
    twice: bool,
    options: Mapping[str, Any] | None = None,
    others: Sequence[Sequence[Any]] = (),
) -> tuple[list[Any], list[str], int]:
    """Run ``run(variables, key, arrays)`` under both keys, and again for control.

    The compiled program also runs on ``others``, each with its own arrays. Its program is kept under
    ``name``; a case that is not compiled has none. ``options`` are the compiler's.
    """
    variables, arrays = operands
    keys = [jax.random.key(seed) for seed in KEYS]
    call, differences = run, []
    if case.compiled:
        traced = jax.jit(run).trace(variables, keys[0], arrays)
        lowered = traced.lower()
        note_program(result, name, traced, lowered)
        call = lowered.compile(dict(options or {}))
    runs = [call(variables, key, arrays) for key in keys]
    if case.compiled:
        runs += [call(variables, keys[0], other) for other in others]
    if not twice:
        return runs, [], 0
    if case.compiled:
        # A second, independent trace; the same text compiles to the same program, so it runs again.
        lowered = jax.jit(lambda *a: run(*a)).lower(variables, keys[0], arrays)
        text, other = result.programs[name], canonical.canonical(lowered.as_text())
        differences = [] if other == text else [canonical.first_line_apart(text, other)]
    left = fetch(named_leaves(runs[0])[0])
    right = fetch(named_leaves(call(variables, keys[0], arrays))[0])
    differences += [f"{path} differs" for path in left if not same_bits(left[path], right[path])]
    return runs, differences, len(left)
