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
from nnx_migrate.parity.evaluation.program_features import Unseen, note_program
from nnx_migrate.parity.evaluation.results import Numbers
from nnx_migrate.parity.evaluation.running import describe_error, retraced
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


@dataclass(frozen=True)
class SideCall:
    """A call of one side, to be measured: once more for control where ``twice``.

    ``operands`` are variables by path and arrays, ``options`` those of the compiler.
    """

    case: ParityCase
    apply: Apply
    arguments: Arguments
    operands: tuple[Variables, list[Any]]
    twice: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


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
    call = SideCall(case, apply, arguments, (dict(variables), list(arrays)), control)
    for name, stage in ((FORWARD, measure_forward), (LOSS_AND_GRADIENTS, _loss_and_gradients)):
        try:
            retraced(functools.partial(stage, call, result))
        except NoLoss as reason:
            result.skipped |= {LOSS: str(reason), GRADIENTS: str(reason)}
        except Exception as error:  # noqa: BLE001 (any error of the model is a finding)
            failed = (name,) if name == FORWARD else (LOSS, GRADIENTS)
            result.errors |= dict.fromkeys(failed, describe_error(error))
            result.raised |= dict.fromkeys(failed, error)
    measure_input_gradients(call, result)
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


def called(call: SideCall, seen: Seen) -> Callable[..., tuple[Any, list[Any], Variables]]:
    """Return ``run(variables, key, arrays) -> (outputs, their arrays, what it changed)``."""

    def run(variables: Variables, key: Any, arrays: Sequence[Any]) -> Any:
        with constant_key(key, call.case.rngs, seen.drawn):
            outputs, mutated = call.apply(variables, *call.arguments.rebuild(arrays))
        seen.structures.append(structure(outputs))
        seen.plain.append(plain_values(outputs))
        # A list, so that names of containers never decide the order of results.
        names, leaves = array_outputs(outputs)
        seen.paths.append(names)
        return outputs, leaves, mutated

    return run


def measure_forward(call: SideCall, result: Measured) -> None:
    """Run the call alone: outputs and collections."""
    seen = Seen()
    whole = called(call, seen)

    def run(variables: Variables, key: Any, arrays: Sequence[Any]) -> Any:
        return whole(variables, key, arrays)[1:]

    variables, arrays = call.operands
    others = other_inputs(arrays)
    runs, differences, count = execute(
        call, FORWARD, run, variables, result, tuple(others.values())
    )
    seen.keys = keys_of(call, seen.drawn)
    found = [seen.numbers(variables, leaves, mutated) for leaves, mutated in runs]
    result.first, result.second = found[: len(KEYS)]
    result.others = dict(zip(others, found[len(KEYS) :], strict=False))
    plain = seen.plain
    result.control += [f"forward: {line}" for line in differences]
    again = any(one != plain[-1] for one in plain) or len({*seen.structures}) > 1
    result.control += ["forward: the values of Python differ"] if again else []
    result.control_leaves += count + (len(plain[-1]) if call.twice else 0)


def keys_of(call: SideCall, drawn: Collection[str]) -> int | None:
    """Count the different keys of a call under real ones; None: not compiled, or on several hosts."""
    if not call.case.compiled or jax.process_count() > 1:
        return None
    if not drawn:
        return 0

    def run(operands: Any) -> Any:
        variables, arrays = operands
        outputs, mutated = call.apply(variables, *call.arguments.rebuild(arrays))
        return array_outputs(outputs)[1], mutated

    return distinct_keys(run, call.operands)


def _loss_and_gradients(call: SideCall, result: Measured) -> None:
    run, parts = differentiated(call.case, call.apply, call.arguments, call.operands[0])
    runs, differences, count = execute(call, LOSS_AND_GRADIENTS, run, parts, result)
    for name, (value, gradients) in zip(("first", "second"), runs, strict=True):
        numbers = dataclasses.replace(
            getattr(result, name), loss=fetch({"loss": value}), gradients=fetch(gradients)
        )
        setattr(result, name, numbers)
    result.control += [f"loss and gradients: {line}" for line in differences]
    result.control_leaves += count


def measure_input_gradients(call: SideCall, result: Measured) -> None:
    """Differentiate the loss by the float inputs, where there are any and it could be computed.

    A program of its own, as a model that trains need not be differentiable there.
    """
    variables, arrays = call.operands
    places = [place for place, value in enumerate(arrays) if is_inexact(value.dtype)]
    if not places or LOSS in result.errors:
        return

    def loss(given: Sequence[Any], variables: Variables, key: Any, arrays: Sequence[Any]) -> Any:
        chosen = dict(zip(places, given, strict=True))
        given = [chosen.get(n, one) for n, one in enumerate(arrays)]
        args, kwargs = call.arguments.rebuild(given)
        with constant_key(key, call.case.rngs):
            outputs, _ = call.apply(variables, args, kwargs)
            return loss_of(call.case, outputs, args)

    def run(variables: Variables, key: Any, arrays: Sequence[Any]) -> Any:
        return jax.grad(loss)([arrays[place] for place in places], variables, key, arrays)

    try:
        runs, differences, _ = retraced(
            functools.partial(execute, call, INPUT_GRADIENTS, run, variables, result)
        )
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
        with constant_key(key, case.rngs):
            outputs, _ = apply({**trained, **others}, args, kwargs)
            return loss_of(case, outputs, args)

    def run(parts: tuple[Variables, Variables], key: Any, arrays: Sequence[Any]) -> Any:
        return jax.value_and_grad(loss)(*parts, key, arrays)

    return run, parts


def execute(
    call: SideCall,
    name: str,
    run: Callable[..., Any],
    variables: Any,
    result: Measured,
    others: Sequence[Sequence[Any]] = (),
) -> tuple[list[Any], list[str], int]:
    """Run ``run(variables, key, arrays)`` under both keys, and again for control.

    The compiled program also runs on ``others``, each with its own arrays. Its program is kept under
    ``name``; a case that is not compiled has none.
    """
    arrays = call.operands[1]
    keys = [jax.random.key(seed) for seed in KEYS]
    program, differences = run, []
    if call.case.compiled:
        traced = jax.jit(run).trace(variables, keys[0], arrays)
        lowered = traced.lower()
        note_program(result, name, traced, lowered)
        program = lowered.compile(dict(call.options))
    runs = [program(variables, key, arrays) for key in keys]
    if call.case.compiled:
        runs += [program(variables, keys[0], other) for other in others]
    if not call.twice:
        return runs, [], 0
    if call.case.compiled:
        # A second, independent trace; the same text compiles to the same program, so it runs again.
        lowered = jax.jit(lambda *a: run(*a)).lower(variables, keys[0], arrays)
        text, other = result.programs[name], canonical.canonical(lowered.as_text())
        differences = [] if other == text else [canonical.first_line_apart(text, other)]
    left = fetch(named_leaves(runs[0])[0])
    right = fetch(named_leaves(program(variables, keys[0], arrays))[0])
    differences += [f"{path} differs" for path in left if not same_bits(left[path], right[path])]
    return runs, differences, len(left)
