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
from nnx_migrate.parity.evaluation.program_features import ProgramFeature, note_program
from nnx_migrate.parity.evaluation.results import Numbers
from nnx_migrate.parity.evaluation.running import describe_error, trace_with_retry
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
class Measurement:
    """What running one side's programs gave; filled stage by stage."""

    first: Numbers = field(default_factory=Numbers)
    second: Numbers = field(default_factory=Numbers)
    others: dict[str, Numbers] = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)
    debug_programs: dict[str, str] = field(default_factory=dict)
    features: dict[str, tuple[ProgramFeature, ...]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    exceptions: dict[str, Exception] = field(default_factory=dict)
    skip_reasons: dict[str, str] = field(default_factory=dict)
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
) -> Measurement:
    """Run forward, loss and gradients of one side under both keys; with ``control``, twice.

    A stage that raises is recorded under its name and the next one still runs.
    """
    result = Measurement()
    call = SideCall(case, apply, arguments, (dict(variables), list(arrays)), control)
    for name, stage in ((FORWARD, measure_forward), (LOSS_AND_GRADIENTS, _loss_and_gradients)):
        try:
            trace_with_retry(functools.partial(stage, call, result))
        except NoLoss as reason:
            result.skip_reasons |= {LOSS: str(reason), GRADIENTS: str(reason)}
        except Exception as error:  # noqa: BLE001 (any error of the model is a finding)
            stages = (name,) if name == FORWARD else (LOSS, GRADIENTS)
            result.errors |= dict.fromkeys(stages, describe_error(error))
            result.exceptions |= dict.fromkeys(stages, error)
    measure_input_gradients(call, result)
    return result


@dataclass
class TraceNotes:
    """What tracing a call shows beside its arrays: an entry per trace, and the streams drawn from."""

    structures: list[str] = field(default_factory=list)
    plain: list[dict[str, str]] = field(default_factory=list)
    paths: list[list[str]] = field(default_factory=list)
    stream_names: set[str] = field(default_factory=set)
    keys: int | None = None

    def numbers(
        self, variables: Mapping[str, Any], leaves: list[Any], new_variables: Any
    ) -> Numbers:
        """What a run gave: ``leaves`` are its outputs, ``new_variables`` the collections it returned."""
        collections = fetch(new_variables)
        constant_collections = [
            path
            for path, value in collections.items()
            if path in variables and same_bits(value, to_host(variables[path]))
        ]
        return Numbers(
            structure=self.structures[-1],
            outputs=fetch(dict(zip(self.paths[-1], leaves, strict=True))),
            collections=collections,
            plain=self.plain[-1],
            constant_collections=tuple(constant_collections),
            stream_names=tuple(sorted(self.stream_names)),
            keys=self.keys,
        )


def forward_run(
    call: SideCall, notes: TraceNotes
) -> Callable[..., tuple[Any, list[Any], Variables]]:
    """Return ``run(variables, key, arrays) -> (outputs, their arrays, what it changed)``."""

    def run(variables: Variables, key: Any, arrays: Sequence[Any]) -> Any:
        with constant_key(key, call.case.rngs, notes.stream_names):
            outputs, new_variables = call.apply(variables, *call.arguments.rebuild(arrays))
        notes.structures.append(structure(outputs))
        notes.plain.append(plain_values(outputs))
        # A list, so that names of containers never decide the order of results.
        names, leaves = array_outputs(outputs)
        notes.paths.append(names)
        return outputs, leaves, new_variables

    return run


def measure_forward(call: SideCall, result: Measurement) -> None:
    """Run the call alone: outputs and collections."""
    notes = TraceNotes()
    whole = forward_run(call, notes)

    def run(variables: Variables, key: Any, arrays: Sequence[Any]) -> Any:
        return whole(variables, key, arrays)[1:]

    variables, arrays = call.operands
    others = other_inputs(arrays)
    runs, differences, count = execute(
        call, FORWARD, run, variables, result, tuple(others.values())
    )
    notes.keys = keys_of(call, notes.stream_names)
    found = [notes.numbers(variables, leaves, new_variables) for leaves, new_variables in runs]
    result.first, result.second = found[: len(KEYS)]
    result.others = dict(zip(others, found[len(KEYS) :], strict=False))
    plain = notes.plain
    result.control += [f"forward: {line}" for line in differences]
    again = any(one != plain[-1] for one in plain) or len({*notes.structures}) > 1
    result.control += ["forward: the values of Python differ"] if again else []
    result.control_leaves += count + (len(plain[-1]) if call.twice else 0)


def keys_of(call: SideCall, stream_names: Collection[str]) -> int | None:
    """Count the different keys of a call under real ones; None: not compiled, or on several hosts."""
    if not call.case.compiled or jax.process_count() > 1:
        return None
    if not stream_names:
        return 0

    def run(operands: Any) -> Any:
        variables, arrays = operands
        outputs, new_variables = call.apply(variables, *call.arguments.rebuild(arrays))
        return array_outputs(outputs)[1], new_variables

    return distinct_keys(run, call.operands)


def _loss_and_gradients(call: SideCall, result: Measurement) -> None:
    run, parts = gradient_run(call.case, call.apply, call.arguments, call.operands[0])
    runs, differences, count = execute(call, LOSS_AND_GRADIENTS, run, parts, result)
    for name, (value, gradients) in zip(("first", "second"), runs, strict=True):
        numbers = dataclasses.replace(
            getattr(result, name), loss=fetch({"loss": value}), gradients=fetch(gradients)
        )
        setattr(result, name, numbers)
    result.control += [f"loss and gradients: {line}" for line in differences]
    result.control_leaves += count


def measure_input_gradients(call: SideCall, result: Measurement) -> None:
    """Differentiate the loss by the float inputs, where there are any and it could be computed.

    A program of its own, as a model that trains need not be differentiable there.
    """
    variables, arrays = call.operands
    places = [place for place, value in enumerate(arrays) if is_inexact(value.dtype)]
    if not places or LOSS in result.errors:
        return

    def loss(
        float_inputs: Sequence[Any], variables: Variables, key: Any, arrays: Sequence[Any]
    ) -> Any:
        replacements = dict(zip(places, float_inputs, strict=True))
        float_inputs = [replacements.get(n, one) for n, one in enumerate(arrays)]
        args, kwargs = call.arguments.rebuild(float_inputs)
        with constant_key(key, call.case.rngs):
            outputs, _ = call.apply(variables, args, kwargs)
            return loss_of(call.case, outputs, args)

    def run(variables: Variables, key: Any, arrays: Sequence[Any]) -> Any:
        return jax.grad(loss)([arrays[place] for place in places], variables, key, arrays)

    try:
        runs, differences, _ = trace_with_retry(
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
    params = {
        path: value
        for path, value in variables.items()
        if path.startswith("params/") and is_inexact(value.dtype)
    }
    if not params:
        raise NoLoss("the model has no floating-point parameters")
    return params, {path: value for path, value in variables.items() if path not in params}


def gradient_run(
    case: ParityCase, apply: Apply, arguments: Arguments, variables: Mapping[str, Any]
) -> tuple[Callable[..., Any], tuple[Variables, Variables]]:
    """Return ``run(parts, key, arrays) -> (loss, gradients)``, and the variables in those parts.

    Raises NoLoss when there is nothing that gradients are taken of.
    """
    parts = parts_of(variables)

    def loss(params: Variables, others: Variables, key: Any, arrays: Sequence[Any]) -> Any:
        args, kwargs = arguments.rebuild(arrays)
        with constant_key(key, case.rngs):
            outputs, _ = apply({**params, **others}, args, kwargs)
            return loss_of(case, outputs, args)

    def run(parts: tuple[Variables, Variables], key: Any, arrays: Sequence[Any]) -> Any:
        return jax.value_and_grad(loss)(*parts, key, arrays)

    return run, parts


def execute(
    call: SideCall,
    name: str,
    run: Callable[..., Any],
    variables: Any,
    result: Measurement,
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
        trace = jax.jit(run).trace(variables, keys[0], arrays)
        lowering = trace.lower()
        note_program(result, name, trace, lowering)
        program = lowering.compile(dict(call.options))
    runs = [program(variables, key, arrays) for key in keys]
    if call.case.compiled:
        runs += [program(variables, keys[0], other) for other in others]
    if not call.twice:
        return runs, [], 0
    if call.case.compiled:
        # A second, independent trace; the same text compiles to the same program, so it runs again.
        lowering = jax.jit(lambda *a: run(*a)).lower(variables, keys[0], arrays)
        text, other = result.programs[name], canonical.canonical(lowering.as_text())
        differences = [] if other == text else [canonical.first_line_apart(text, other)]
    left = fetch(named_leaves(runs[0])[0])
    right = fetch(named_leaves(program(variables, keys[0], arrays))[0])
    differences += [f"{path} differs" for path in left if not same_bits(left[path], right[path])]
    return runs, differences, len(left)
