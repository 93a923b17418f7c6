"""What a traced program holds that no number shows: constraints, rematerialisation and the like.

The numbers of a CPU, that is: it computes every requested precision of a product alike.

Read from jaxprs, which still know the module and the source line that every operation comes from.
"""

from __future__ import annotations

import functools
import linecache
import re
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import flax
import jax
import optax
from jax.extend.core import jaxprs_in_params

from nnx_migrate.parity.evaluation.shardings import Layout, layout_on, show, units_of
from nnx_migrate.parity.programs import canonical
from nnx_migrate.parity.unit_axis_notes import is_note, unit_axes_of

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_SET = re.compile(r"\{([^{}]*)\}")
_TRANSFORM = re.compile(r"\w+\(|\)")
_COLLECTIVES = (
    *("psum", "psum_invariant", "pmax", "pmin", "ppermute", "all_gather", "all_to_all"),
    *("reduce_scatter", "pbroadcast", "all_gather_invariant", "all_gather_reduced"),
)
_CALLBACKS = ("debug_callback", "debug_print", "io_callback", "pure_callback")
_DEFAULT = jax.lax.Precision.DEFAULT.name
# Whose frames are no place in the model: libraries, and what migrated code imports of us.
_PACKAGE = Path(__file__).resolve().parents[2]
_INNER = tuple(
    f"{path}/"
    for path in (
        sysconfig.get_path("stdlib"),
        *jax.__path__,
        *flax.__path__,
        *optax.__path__,
        _PACKAGE,
    )
)
_SHOWN_FRAMES = 2


@dataclass(frozen=True)
class ProgramFeature:
    """One such operation: its ``kind``, ``what`` it says, and where it comes from.

    ``constraint P(data) on float32[8,4]`` is of the kind ``constraint``; the rest is ``what`` it says.

    ``module`` is the path of the Linen module, "" where none is known; ``lines`` are the innermost
    lines of the model's code, as ``file.py:12 in f`` with their text. ``units`` are the mesh axes of size
    1 that it names, by dimension: they split nothing, and ``what`` leaves them out. ``spec_axes`` are those
    that its logical names stand for, None where that is not known.
    """

    kind: str
    what: str
    module: str
    lines: tuple[tuple[str, str], ...]
    units: Layout = ()
    spec_axes: tuple[str, ...] | None = None

    @property
    def place(self) -> str:
        """Where it is, for a person."""
        names = " from ".join(name for name, _ in self.lines)
        return " ".join(part for part in (self.module, f"({names})" if names else "") if part)

    def text(self, line: int) -> str:
        """The text of one of the lines, "" where there is none."""
        return self.lines[line][1] if self.lines else ""


class HasPrograms(Protocol):
    """Programs by name: their texts, canonical and with locations, and what numbers do not show."""

    @property
    def programs(self) -> dict[str, str]:
        """Canonical texts."""

    @property
    def debug_programs(self) -> dict[str, str]:
        """Texts with locations."""

    @property
    def features(self) -> dict[str, tuple[ProgramFeature, ...]]:
        """What numbers do not show."""


def note_program(result: HasPrograms, name: str, traced: Any, lowered: Any) -> None:
    """Keep what is compared of a program."""
    result.programs[name] = canonical.canonical(lowered.as_text())
    result.debug_programs[name] = lowered.as_text(debug_info=True)
    result.features[name] = features_of(traced.jaxpr.jaxpr)


def features_of(jaxpr: Any, module: str = "") -> tuple[ProgramFeature, ...]:
    """Return all such operations of a jaxpr and those inside it, in the order of the program."""
    return tuple(_walk(jaxpr, module))


def _walk(
    jaxpr: Any, module: str, around: tuple[str, ...] | None = None
) -> Iterator[ProgramFeature]:
    for equation in jaxpr.eqns:
        stack = str(equation.source_info.name_stack)
        inner, spec_axes = join_path(module, stack), unit_axes_of(stack)
        spec_axes = around if spec_axes is None else spec_axes
        for kind, what in _feature_texts(equation):
            lines = _lines(equation.source_info.traceback)
            yield ProgramFeature(kind, what, inner, lines, units_of(_sharding(equation)), spec_axes)
        for inner_jaxpr in jaxprs_in_params(equation.params):
            yield from _walk(inner_jaxpr, inner, spec_axes)


def _feature_texts(equation: Any) -> Iterator[tuple[str, str]]:
    name, params = equation.primitive.name, equation.params
    types = ", ".join(variable.aval.str_short() for variable in equation.outvars)
    if name == "reshard" and _is_nothing(_sharding(equation)):
        return
    if name in ("sharding_constraint", "reshard"):
        kind = "constraint" if name == "sharding_constraint" else name
        yield kind, _on(_sharding(equation), types)
    elif name in ("remat2", "checkpoint"):
        policy_function = params["policy"]
        policy = "none" if policy_function is None else _named(policy_function)
        yield "remat", f"with policy {policy}, prevent_cse={params['prevent_cse']}"
    elif name == "optimization_barrier":
        yield "barrier", f"over {types}"
    elif name in _COLLECTIVES:
        axes = params.get("axes", params.get("axis_name"))
        yield "collective", f"{name} over {axes} to {types}"
    elif name == "device_put":
        for device in params["devices"]:
            kind = getattr(device, "memory_kind", None)
            yield "placement", f"of {types} in {kind or device}"
    elif name in _CALLBACKS:
        operands = ", ".join(variable.aval.str_short() for variable in equation.invars)
        yield "callback", f"{name} of {operands or 'nothing'}"
    elif "preferred_element_type" in params:  # products: dots and convolutions of every kind
        yield from _product(equation)
    if any(params.get("donated_invars", ())):
        yield "donation", f"of {sum(params['donated_invars'])} arguments"


def _sharding(equation: Any) -> Any:
    """The sharding that an operation asks for; None where it asks for none."""
    return equation.params.get("sharding", equation.params.get("dst_sharding"))


def _is_nothing(sharding: Any) -> bool:
    """Whether a reshard is lowered to no operation: its mesh has no explicit axis.

    ``nnx.Dropout`` (flax 0.12.8) asks for the sharding of its inputs on any mesh.
    """
    return bool(sharding.mesh.are_all_axes_auto or sharding.mesh.are_all_axes_manual)


def _product(equation: Any) -> Iterator[tuple[str, str]]:
    """What is asked of a product beyond its default; jnp states the type of the operands, too."""
    name, params = equation.primitive.name, equation.params
    precision, element_type = params.get("precision"), params["preferred_element_type"]
    each = precision if isinstance(precision, tuple) else (precision,)
    precision_names = list(dict.fromkeys(getattr(one, "name", str(one)) for one in each))
    if precision is not None and precision_names != [_DEFAULT]:
        yield "precision", f"{' and '.join(precision_names)} of {name}"
    types = dict.fromkeys(str(variable.aval.dtype) for variable in equation.invars[:2])
    if element_type is not None and str(element_type) not in types:
        yield "preferred_element_type", f"{element_type} of {name} of {' and '.join(types)}"


def _on(sharding: Any, types: str) -> str:
    try:
        return f"{show(layout_on(sharding))} on {types}"
    except ValueError:
        return f"{sharding} on {types}"


def _named(policy: Any) -> str:
    """Name a policy, with what it closes over; the same text in every process."""
    text = _ADDRESS.sub("", getattr(policy, "__qualname__", None) or str(policy))
    closure_texts = [
        _named(cell.cell_contents) for cell in getattr(policy, "__closure__", None) or ()
    ]
    text += f"({', '.join(closure_texts)})" if closure_texts else ""
    # Sets of strings are told in another order by every process.
    return _SET.sub(lambda found: f"{{{', '.join(sorted(found.group(1).split(', ')))}}}", text)


def join_path(module: str, stack: str) -> str:
    """Add the steps of a name stack, ``transpose(jvp(block))/mlp``, to a module's path."""
    steps = (module, *_TRANSFORM.sub("", stack).split("/"))
    return "/".join(step for step in steps if step and not is_note(step))


def _lines(traceback: Any) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for frame in traceback.frames if traceback is not None else ():
        if not is_model(frame.file_name):
            continue
        text = linecache.getline(frame.file_name, frame.line_num).strip()
        name = f"{Path(frame.file_name).name}:{frame.line_num} in {frame.function_name}"
        found.append((name, text))
        if len(found) == _SHOWN_FRAMES:
            break
    return tuple(found)


@functools.cache
def is_model(file: str) -> bool:
    """Whether a file is of the model: neither of a library nor of what migrated code imports."""
    if file.startswith("<"):
        return False
    return "/_fixtures/" in file or not file.startswith(_INNER)
