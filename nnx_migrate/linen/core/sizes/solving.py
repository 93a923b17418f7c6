"""All sizes with which an explicit class is built: for a call, or for code that reads a part of it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from nnx_migrate import nn as nnm
from nnx_migrate.linen.core.sizes.arrays import shapes_in
from nnx_migrate.linen.core.sizes.declaration import Size, UnknownSize, inputs_of
from nnx_migrate.linen.core.sizes.names import NamedSize
from nnx_migrate.linen.core.sizes.trial_shapes import try_build
from nnx_migrate.linen.core.sizes.trials import Trials, called_on, class_of, some_value
from nnx_migrate.linen.core.sizes.variables import of_variables, sizes_and_shapes, sizes_of

_MOST = 64  # trials of sizes for a part that is called


def solve(
    make: Callable[..., Any],
    sizes: Mapping[str, Size],
    optional: frozenset[str],
    method: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    variables: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The sizes with which a module is built for a call.

    Args:
      make: the class with all other arguments.
      sizes: where each size comes from.
      optional: those that are None where no call reaches what they measure.
      variables: the variables that the call is given; None when it makes them.

    Raises:
      UnknownSize: one shows nowhere.
    """
    inputs = inputs_of(getattr(class_of(make), method), args, kwargs)
    found: dict[str, Any] = {}
    input_sizes: dict[str, Size] = {}
    hidden_names: list[str] = []
    for name, size in sizes.items():
        if size.method != method:
            hidden_names.append(name)
            continue
        value = size.read_at((), inputs)
        if value is None and size.path:
            input_sizes[name] = size
        elif value is not None or name not in optional:
            found[name] = value
    if hidden_names:
        open_sizes = {name: sizes[name] for name in (*hidden_names, *input_sizes)}
        # Without variables, the call shows what it gives the module's own methods.
        if any(one.shows_nowhere for one in open_sizes.values()) or not variables:
            sizes_of_variables = sizes_of(make, open_sizes, found, variables) if variables else {}
            rest = {name: one for name, one in open_sizes.items() if name not in sizes_of_variables}
            found |= (
                called_on(make, rest, {**found, **sizes_of_variables}, method, args, kwargs)
                | sizes_of_variables
            )
        open_sizes = {name: one for name, one in open_sizes.items() if name not in found}
        call = functools.partial(called_on, make, method=method, args=args, kwargs=kwargs)
        input_shapes = shapes_in((args, kwargs))
        found |= (
            of_variables(make, open_sizes, found, variables, input_shapes, call)
            if open_sizes
            else {}
        )
        input_sizes = {}
    if not input_sizes:
        return found
    try:
        sizes_of_variables = Trials(make, found, input_sizes, method, args, kwargs).run()
    except Exception:
        # A call of its own may need what only the given variables hold: the cache of a decoder.
        sizes_of_variables = sizes_of(make, input_sizes, found, variables) if variables else {}
        if sizes_of_variables.keys() < input_sizes.keys():
            raise
    unknown = [
        name for name, one in sizes_of_variables.items() if one is None and name not in optional
    ]
    unknown = [name for name in unknown if isinstance(input_sizes[name], NamedSize)]
    if unknown:
        _require_idle(make, unknown[0], found | sizes_of_variables)
    return found | sizes_of_variables


def _require_idle(make: Callable[..., Any], name: str, sizes: dict[str, Any]) -> None:
    """Raise where a size that is measured nowhere is needed: a field may leave out what it is for.

    Raises:
      UnknownSize: the module cannot be built with None for it.
    """
    try:
        nnm.abstract(functools.partial(make, **sizes))
    except Exception as error:
        raise UnknownSize(
            f"{class_of(make).__qualname__}: nothing that was called has an input for {name}:"
            f" give it, or say where it shows: lazy(Class, {name}=Size(...))"
        ) from error


def solve_part(
    make: Callable[..., Any],
    sizes: Mapping[str, Size],
    optional: frozenset[str],
    variables: Mapping[str, Any],
    run: Callable[[Any], Any] | None,
    input_shapes: Collection[tuple[int, ...]] = (),
) -> dict[str, Any]:
    """The sizes with which a module is built of which code reads a part, or calls it by ``run``.

    They are what the variables held show, or what is measured in the call. What neither shows belongs
    to parts that are not there: it is left out if the module can be built so, and else any number.

    Args:
      input_shapes: the shapes of inputs with which ``run`` calls a method.
    """
    found = sizes_and_shapes(make, sizes, {}, variables, input_shapes)
    rest = {name: size for name, size in sizes.items() if name not in found}
    guesses = {name: some_value(size) for name, size in rest.items() if name not in optional}
    left_out = functools.partial(nnm.abstract, functools.partial(make, **guesses, **found))
    if rest.keys() & optional and try_build(left_out) is None:
        guesses = {name: some_value(size) for name, size in rest.items()}
    if run is not None:
        found |= _sizes_in_call(make, rest, {**guesses, **found}, run, input_shapes)
    return guesses | found


def _sizes_in_call(
    make: Callable[..., Any],
    sizes: Mapping[str, Size],
    known_sizes: Mapping[str, Any],
    run: Callable[[Any], Any],
    input_shapes: Collection[tuple[int, ...]],
) -> dict[str, Any]:
    """The sizes with which a part can be called: of its inputs, and of those of the module itself.

    The latter are those of an input with which the part is called: ``net.encoder(x)``. Where that part
    has nothing of them, any number will do.
    """
    input_sizes = {name: size for name, size in sizes.items() if size.path}
    rest = {name: one for name, one in known_sizes.items() if name not in input_sizes}
    first_error: Exception | None = None
    for own in _own_sizes(sizes, rest, input_shapes):
        try:
            return own | called_on(make, input_sizes, {**rest, **own}, run, (), {})
        except Exception as error:  # noqa: BLE001 - raised below unless another size mends it
            first_error = first_error or error
    assert first_error is not None
    raise first_error


def _own_sizes(
    sizes: Mapping[str, Size],
    known_sizes: Mapping[str, Any],
    input_shapes: Collection[tuple[int, ...]],
) -> Iterator[dict[str, Any]]:
    """Values for sizes of the module's own inputs: all that inputs of the call may show, guesses last."""
    own = {
        name: [*_axes(size.axis, input_shapes), known_sizes.get(name)]  # None: it is left out
        for name, size in sizes.items()
        if not size.path and size.fact is None and size.axis is not None
    }
    for values in itertools.islice(itertools.product(*map(dict.fromkeys, own.values())), _MOST):
        values_by_name = zip(own, values, strict=True)
        yield {name: one for name, one in values_by_name if one is not None}


def _axes(axis: int, shapes: Collection[tuple[int, ...]]) -> list[int]:
    return [one[axis] for one in shapes if -len(one) <= axis < len(one)]
