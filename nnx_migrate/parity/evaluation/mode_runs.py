"""Further runs of a call, in the other mode of it: ``train=True`` where the case says False.

The Linen side finds out which modes there are; the NNX side runs those that Linen could.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
from flax import errors

from nnx_migrate.parity.case import ParityCase, arguments_of, in_mode
from nnx_migrate.parity.evaluation.constant_key import constant_key
from nnx_migrate.parity.evaluation.measure import (
    FORWARD,
    GRADIENTS,
    LOSS,
    LOSS_AND_GRADIENTS,
    Apply,
    Measurement,
    SideCall,
    TraceNotes,
    Variables,
    execute,
    forward_run,
    keys_of,
    measure_forward,
    measure_input_gradients,
    parts_of,
)
from nnx_migrate.parity.evaluation.outputs import NoLoss, loss_of
from nnx_migrate.parity.evaluation.results import ModeRun
from nnx_migrate.parity.evaluation.running import describe_error, trace_with_retry
from nnx_migrate.parity.modes import SWITCHES, Mode, Switch, booleans, fields, takes
from nnx_migrate.parity.programs.compiler_options import QUICKLY
from nnx_migrate.parity.values import fetch

_MISSING_STREAM = re.compile(r'needs PRNG for "(\w+)"')
_MOST_STREAMS = 3
ARGUMENT, FIELD = "arguments of the call", "fields of the module"

Run = Callable[[ParityCase], Measurement]


def linen_modes(
    case: ParityCase, module: Any, collections: Iterable[str], run: Run
) -> tuple[tuple[ModeRun, ...], dict[str, str]]:
    """Run the modes that a Linen module has; return them, and what had one value only with the reason.

    ``collections`` are those of the module. All switches go at once, each by itself where that
    cannot run.
    """
    booleans_of_call = booleans(
        call_of(type(module), case.method), module, case.inputs, case.kwargs
    )
    switches = tuple(one for one in booleans_of_call if one.name in SWITCHES)
    others = tuple(name for name in collections if name not in ("params", *case.collections))
    fixed_arguments = {_text(one): ARGUMENT for one in booleans_of_call if one not in switches}
    fixed_arguments |= {f"{name}={value}": FIELD for name, value in fields(module).items()}
    runs: list[ModeRun] = []

    def attempt(switches_of_mode: Sequence[Switch]) -> str:
        found = _attempt(case, _mode(switches_of_mode, others), run)
        runs.extend([found] if not found.missing else [])
        return found.missing

    if not switches and not others:
        return (), fixed_arguments
    reason = attempt(switches)
    if reason and len(switches) > 1:
        reasons = {_text(one): attempt([one]) for one in switches}
    else:
        reasons = dict.fromkeys(map(_text, switches), reason)
    if not runs and switches and others:
        reason = attempt(())
    if not runs and others:
        reasons[f"immutable {', '.join(others)}"] = reason
    return tuple(runs), {**fixed_arguments, **{text: why for text, why in reasons.items() if why}}


def nnx_modes(case: ParityCase, module: Any, run: Run) -> tuple[ModeRun, ...]:
    """Run the modes of a case on the NNX side."""
    function = call_of(type(module), case.method)
    return tuple(
        _mode_run(mode, run(in_mode(case, mode)))
        if takes(function, mode.switches)
        else ModeRun(mode, missing=f"the NNX call takes no argument {', '.join(mode.switches)}")
        for mode in case.modes or ()
    )


def call_of(cls: type, method: Any) -> Callable[..., Any]:
    """The function that a case calls."""
    found: Callable[..., Any] = method if callable(method) else getattr(cls, method or "__call__")
    return found


def _text(switch: Switch) -> str:
    return f"{switch.name}={switch.value}"


def _mode(switches: Sequence[Switch], collections: tuple[str, ...]) -> Mode:
    return Mode(
        {one.name: not one.value for one in switches},
        {one.name: one.place for one in switches if one.place is not None},
        collections,
    )


def _attempt(case: ParityCase, mode: Mode, run: Run) -> ModeRun:
    """Run a mode on the Linen side, with a seed for each stream that only this mode draws from."""
    for _ in range(_MOST_STREAMS):
        measurement = run(in_mode(case, mode))
        error = measurement.exceptions.get(FORWARD)
        stream = _MISSING_STREAM.search(str(error))
        if not isinstance(error, errors.InvalidRngError) or stream is None:
            break
        mode = dataclasses.replace(mode, streams=(*mode.streams, stream.group(1)))
    if FORWARD in measurement.errors:
        reason = f"Linen itself cannot run {mode.name}: {measurement.errors[FORWARD]}"
        return ModeRun(mode, missing=reason)
    if measurement.control:
        reason = f"with {mode.name} Linen differs from itself: {measurement.control[0]}"
        return ModeRun(mode, missing=reason)
    return _mode_run(mode, measurement)


def _mode_run(mode: Mode, measurement: Measurement) -> ModeRun:
    return ModeRun(
        mode,
        first=measurement.first,
        second=measurement.second,
        programs=measurement.programs,
        debug_programs=measurement.debug_programs,
        features=measurement.features,
        errors=measurement.errors,
        skip_reasons=measurement.skip_reasons,
    )


def measure_mode(
    apply_of: Callable[[ParityCase], Apply],
    variables: Mapping[str, Any],
    arrays: Sequence[Any],
    control: bool,
    case: ParityCase,
) -> Measurement:
    """Run one more call of a side: outputs, collections, loss and gradients in one program.

    ``case`` is in that mode. Where the loss cannot be computed, the call runs without it.
    """
    operands = (dict(variables), list(arrays))
    call = SideCall(case, apply_of(case), arguments_of(case), operands, control, QUICKLY)
    result, gradient_failure = Measurement(), Measurement()
    try:
        trace_with_retry(functools.partial(_together, call, result))
        measure_input_gradients(call, result)
        return result
    except NoLoss as reason:
        gradient_failure.skip_reasons = dict.fromkeys((LOSS, GRADIENTS), str(reason))
    except Exception as error:  # noqa: BLE001 (any error of the model is a finding)
        gradient_failure.errors = dict.fromkeys((LOSS, GRADIENTS), describe_error(error))
    try:
        trace_with_retry(functools.partial(measure_forward, call, gradient_failure))
    except Exception as error:  # noqa: BLE001 (any error of the model is a finding)
        gradient_failure.errors[FORWARD] = describe_error(error)
        gradient_failure.exceptions[FORWARD] = error
    return gradient_failure


def _together(call: SideCall, result: Measurement) -> None:
    variables = call.operands[0]
    parts = parts_of(variables)
    notes = TraceNotes()
    whole = forward_run(call, notes)

    def loss(params: Variables, others: Variables, key: Any, arrays: Sequence[Any]) -> Any:
        outputs, leaves, new_variables = whole({**params, **others}, key, arrays)
        args, _ = call.arguments.rebuild(arrays)
        with constant_key(key, call.case.rngs):
            return loss_of(call.case, outputs, args), (leaves, new_variables)

    def run(parts: tuple[Variables, Variables], key: Any, arrays: Sequence[Any]) -> Any:
        return jax.value_and_grad(loss, has_aux=True)(*parts, key, arrays)

    runs, differences, _ = execute(call, LOSS_AND_GRADIENTS, run, parts, result)
    notes.keys = keys_of(call, notes.stream_names)
    for name, ((value, aux), gradients) in zip(("first", "second"), runs, strict=True):
        numbers = dataclasses.replace(
            notes.numbers(variables, *aux),
            loss=fetch({"loss": value}),
            gradients=fetch(gradients),
        )
        setattr(result, name, numbers)
    result.control += differences
