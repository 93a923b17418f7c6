"""Sizes of an explicit class that is used as Linen's are: read off calls, or off variables.

An explicit constructor asks for what Linen infers. A size that is an input's is read there. One of a
submodule's input is measured: the module is built with a guess and called without values, and what
reaches the submodule is the next guess, until all guesses are what was measured; by induction over
the calls in their order these are the sizes Linen infers. What a call does not show (a method that
starts in the middle) the shapes of the given variables tell.
"""

from __future__ import annotations

import contextvars
import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from nnx_migrate import nn as nnm
from nnx_migrate.nn.variables.sharing import linen_place

Path = tuple[str, ...]
_RANKS = (3, 2, 4, 1, 5)
_TRIALS = 400  # guesses before giving up: a deep model may need one for each layer
_STEP = re.compile(r"\.(\w+)|\[(\w+)\]")
_GUESSES = (64, 128, 32, 1, 256, 16, 8)  # widths that most layers can be built with
_PRIMES = (61 * 64, 67 * 64)  # two widths that no other dimension has
_SEEN: contextvars.ContextVar[dict[Path, Any]] = contextvars.ContextVar("seen")


class UnknownSize(TypeError):
    """A size that neither the call nor the variables show."""


@dataclasses.dataclass(frozen=True)
class Size:
    """A constructor argument that comes from an input of the first call.

    ``argument``: the input's name, or a part of it (``"carry[1]"``, ``"graphs.nodes"``); None for the
    first. ``axis``: which of its dimensions; None for the whole shape. ``of``: the scope path of a
    submodule, when it is that one's input; a ``*`` in it stands for each direct submodule there, and
    the size is a dict by their names. ``method``: which call has the input. ``fact``: not a size but
    whether the input is ``"given"``, or its ``"truth"``.

    >>> lazy(MlpBlock, in_features=Size(axis=-1), length=Size("tokens", 1))
    """

    argument: str | None = None
    axis: int | None = -1
    of: str = ""
    method: str = "__call__"
    fact: str | None = None

    def read(self, inputs: Mapping[str, Any]) -> Any:
        """The size in the inputs of a call; None where the input is not given."""
        value = _part(inputs, self.argument)
        if self.fact == "given":
            return value is not None
        if self.fact == "truth":
            return bool(value)
        if value is None:
            return None
        shape = jnp.shape(value)
        return shape if self.axis is None else shape[self.axis]

    @property
    def path(self) -> Path:
        """The steps of ``of``."""
        return tuple(self.of.split("/")) if self.of else ()


def _part(inputs: Mapping[str, Any], argument: str | None) -> Any:
    if argument is None:
        return next(iter(inputs.values()), None)
    name = re.match(r"\w+", argument)
    assert name is not None
    value = inputs.get(name.group())
    for attribute, item in _STEP.findall(argument[name.end() :]):
        if value is None:
            return None
        value = getattr(value, attribute) if attribute else value[int(item)]
    return value


def inputs_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> dict[str, Any]:
    """The inputs of a method by their names, ``self`` left out; defaults where they are left out."""
    bound = inspect.signature(function).bind(None, *args, **kwargs)
    bound.apply_defaults()
    return dict(list(bound.arguments.items())[1:])


def solve(
    make: Callable[..., Any],
    sizes: Mapping[str, Size],
    optional: frozenset[str],
    method: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    held: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The sizes with which a module is built for a call.

    Args:
      make: the class with all other arguments.
      sizes: where each size comes from.
      optional: those that are None where no call reaches what they measure.
      held: the variables that the call is given; None when it makes them.

    Raises:
      UnknownSize: one shows nowhere.
    """
    inputs = inputs_of(getattr(_class_of(make), method), args, kwargs)
    found: dict[str, Any] = {}
    measured: dict[str, Size] = {}
    hidden: list[str] = []
    for name, size in sizes.items():
        if size.method != method:
            hidden.append(name)
        elif size.path:
            measured[name] = size
        else:
            found[name] = size.read(inputs)
            if found[name] is None and name in optional:
                del found[name]
    if hidden:
        needed = {name: sizes[name] for name in (*hidden, *measured)}
        if any(_shows_nowhere(one) for one in needed.values()):
            found |= _called_on(make, needed, found, method, args, kwargs)
        needed = {name: one for name, one in needed.items() if name not in found}
        call = functools.partial(_called_on, make, method=method, args=args, kwargs=kwargs)
        found |= _of_variables(make, needed, found, held, call) if needed else {}
        measured = {}
    if not measured:
        return found
    try:
        return found | _Measure(make, found, measured, method, args, kwargs).run()
    except Exception:
        # A call of its own may need what only the given variables hold: the cache of a decoder.
        shown = _shown(make, measured, found, held) if held else {}
        if shown.keys() < measured.keys():
            raise
        return found | shown


def solve_part(
    make: Callable[..., Any],
    sizes: Mapping[str, Size],
    optional: frozenset[str],
    held: Mapping[str, Any],
    run: Callable[[Any], Any] | None,
) -> dict[str, Any]:
    """The sizes with which a module is built of which code reads a part, or calls it by ``run``.

    They are what the variables held show, or what is measured in the call. What neither shows belongs
    to parts that are not there: it is left out if it may be, and else any number.
    """
    found = _shown(make, sizes, {}, held)
    rest = {name: size for name, size in sizes.items() if name not in found}
    guesses = {name: _any(size) for name, size in rest.items() if name not in optional}
    if run is not None:
        measured = {name: size for name, size in rest.items() if size.path}
        known = {name: one for name, one in guesses.items() if name not in measured}
        found |= _called_on(make, measured, {**found, **known}, run, (), {})
    return guesses | found


def _any(size: Size) -> Any:
    guess = _GUESSES[0] if size.axis is not None else (1, 1, _GUESSES[0])
    return _nested(size.path, {}, guess)


def _class_of(make: Any) -> Any:
    while isinstance(make, functools.partial):
        make = make.func
    return make


def _shows_nowhere(size: Size) -> bool:
    """Whether variables do not show it: a whole shape, or one size for each of several submodules."""
    return size.fact is None and (size.axis is None or "*" in size.path)


def _called_on(
    make: Callable[..., Any],
    sizes: Mapping[str, Size],
    known: dict[str, Any],
    method: str | Callable[[Any], Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> dict[str, Any]:
    """Sizes in the inputs with which a method or function calls the module or its submodules."""
    found = _Measure(make, known, sizes, method, args, kwargs).run()
    return {name: one for name, one in found.items() if one is not None}


# ---- sizes that the variables show


def _of_variables(
    make: Callable[..., Any],
    sizes: Mapping[str, Size],
    known: dict[str, Any],
    held: Any,
    measure: Callable[[Mapping[str, Size], dict[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """Sizes that the variables held show, or that make no difference.

    Args:
      measure: finds those of submodules that the call reaches.
    """
    if not held:
        raise UnknownSize(
            f"{_class_of(make).__qualname__}: this method does not show the sizes {', '.join(sizes)}:"
            " give it variables that `__call__` made"
        )
    found = _shown(make, sizes, known, held)
    missing = [name for name in sizes if name not in found]
    guess = {**known, **found, **dict.fromkeys(missing, _PRIMES[0])}
    hidden = {name: sizes[name] for name in missing if not _is_idle(make, guess, name)}
    if not all(map(_is_part, hidden.values())):
        raise _unknown(make, hidden)
    if hidden:
        rest = {name: one for name, one in guess.items() if name not in hidden}
        try:
            # A part that has no variables and is not called makes no difference, either.
            guess |= measure(hidden, rest)
        except Exception as error:
            raise _unknown(make, hidden) from error
    return {name: guess[name] for name in sizes}


def _is_part(size: Size) -> bool:
    """Whether it is the size of a submodule's input."""
    return bool(size.path) and size.fact is None


def _unknown(make: Callable[..., Any], sizes: Iterable[str]) -> UnknownSize:
    kind = _class_of(make).__qualname__
    return UnknownSize(f"{kind}: neither the call nor the variables show the size {min(sizes)}")


def _is_idle(make: Callable[..., Any], guess: dict[str, Any], name: str) -> bool:
    """Whether a size makes no difference, as that of a layer which a field leaves out."""
    if not isinstance(guess[name], int):
        return False
    one, other = (
        nnm.abstract(functools.partial(make, **{**guess, name: size})) for size in _PRIMES
    )
    return _options(one) == _options(other) and _shapes(nnx.state(one)) == _shapes(nnx.state(other))


def _options(model: nnx.Module) -> list[tuple[Any, str, dict[str, Any]]]:
    """What modules hold beside variables, by path; lifted classes are made anew, so their names count."""
    plain = (int, float, str, tuple, type(None))
    return [
        (path, type(one).__qualname__, {k: v for k, v in vars(one).items() if isinstance(v, plain)})
        for path, one in nnx.iter_graph(model)
        if isinstance(one, nnx.Module)
    ]


def _shown(
    make: Callable[..., Any], sizes: Mapping[str, Size], known: dict[str, Any], held: Any
) -> dict[str, Any]:
    """The sizes that an axis of a variable has, and the facts of the call that made the variables."""
    shapes = _shapes(held)
    if not shapes:
        return {}
    numbers = [name for name, one in sizes.items() if one.fact is None and not _shows_nowhere(one)]
    shapes_of = {name: _any(one) for name, one in sizes.items() if _shows_nowhere(one)}
    guess = {**known, **shapes_of, **dict.fromkeys(numbers, _PRIMES[0])}
    facts = [name for name, one in sizes.items() if one.fact in ("given", "truth")]
    found = _shown_facts(make, facts, guess, shapes)
    guess |= found
    first = _built_shapes(make, guess)
    for name in numbers:
        other = _built_shapes(make, {**guess, name: _PRIMES[1]})
        for path, shape in other.items():
            axes = [i for i, (a, b) in enumerate(zip(first[path], shape, strict=True)) if a != b]
            one = axes[0] if len(axes) == 1 and path in shapes else None
            if one is not None and (first[path][one], shape[one]) == _PRIMES:
                found[name] = shapes[path][one]
                break
    return found


def _shown_facts(
    make: Callable[..., Any], names: list[str], known: dict[str, Any], held: Mapping[Path, Any]
) -> dict[str, Any]:
    """The facts with which a module is built that has the variables held, as far as they show it."""
    found: dict[str, Any] = dict.fromkeys(names, False)
    for name in names:
        without, given = (
            _built_shapes(make, {**known, **found, name: one}).keys() for one in (False, True)
        )
        found[name] = bool(held.keys() & (given - without)) or (
            bool(without - given) and held.keys().isdisjoint(without - given)
        )
    return found


def _shapes(tree: Any) -> dict[Path, tuple[int, ...]]:
    leaves = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda one: hasattr(one, "unbox"))[
        0
    ]
    return {
        tuple(str(getattr(step, "key", step)) for step in path): jnp.shape(
            one.unbox() if hasattr(one, "unbox") else one
        )
        for path, one in leaves
    }


def _built_shapes(make: Callable[..., Any], sizes: dict[str, Any]) -> dict[Path, tuple[int, ...]]:
    return _shapes(jax.eval_shape(lambda: nnm.variables_of(make(**sizes, rngs=nnx.Rngs(0)))))


# ---- sizes of submodules' inputs


class _Each(dict[str, Any]):
    """Sizes by submodule, and a guess for those not measured yet."""

    guess: Any = None

    def __missing__(self, name: str) -> Any:
        return self.guess

    def get(self, name: str, default: Any = None) -> Any:
        return self[name]

    def __contains__(self, name: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True


@dataclasses.dataclass
class _Measure:
    """Finds the sizes of submodules' inputs by trial."""

    make: Callable[..., Any]
    known: dict[str, Any]
    sizes: Mapping[str, Size]
    method: str | Callable[[Any], Any]  # its name, or a function of the module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def run(self) -> dict[str, Any]:
        """The sizes.

        Raises:
          what the call raises with them.
        """
        seen: dict[Path, Any] = {}
        guesses = self._guesses()
        shape = next(guesses)
        for _ in range(_TRIALS):
            values = {name: self._value(size, seen, shape) for name, size in self.sizes.items()}
            now, error = self._trial(values)
            if error is None and all(seen.get(path) == one for path, one in now.items()):
                return {name: self._settled(size, now) for name, size in self.sizes.items()}
            if error is not None and all(seen.get(path) == one for path, one in now.items()):
                following = next(guesses, None)  # it cannot be built, or called, with this guess
                if following is None:
                    raise error
                shape = following
            seen |= now
        raise UnknownSize(f"{_class_of(self.make).__qualname__}: its sizes depend on themselves")

    def _guesses(self) -> Iterator[tuple[int, ...]]:
        """Shapes of inputs: those of the call with other widths, then with other numbers of axes."""
        leaves = [jnp.shape(one) for one in jax.tree.leaves((self.args, self.kwargs))]
        widths = (_GUESSES[0], *(shape[-1] for shape in leaves if shape), *_GUESSES[1:])
        lead = next((shape[:-1] for shape in leaves if shape), ())
        yield from ((*lead, width) for width in widths)
        if any(size.axis is None for size in self.sizes.values()):
            every = (*lead, *(1,) * max(_RANKS))
            yield from ((*every[: rank - 1], _GUESSES[0]) for rank in _RANKS)

    def _value(self, size: Size, seen: dict[Path, Any], shape: tuple[int, ...]) -> Any:
        """A guess that agrees with all that was measured."""
        parts = {path: inputs for path, inputs in seen.items() if _fits(size.path, path)}
        measured = {path: size.read(inputs) for path, inputs in parts.items()}
        guess = next(reversed(measured.values()), None)
        if guess is None:
            guess = shape[-1] if size.axis is not None else shape
        return _nested(size.path, measured, guess)

    def _settled(self, size: Size, seen: dict[Path, Any]) -> Any:
        parts = {path: inputs for path, inputs in seen.items() if _fits(size.path, path)}
        return _nested(size.path, {path: size.read(one) for path, one in parts.items()}, None)

    def _trial(self, values: dict[str, Any]) -> tuple[dict[Path, Any], Exception | None]:
        """The inputs of the submodules' first calls, as shapes, and how the call ended."""
        paths = [size.path for size in self.sizes.values()]
        leaves, tree = jax.tree.flatten((self.args, self.kwargs))
        places = [i for i, one in enumerate(leaves) if isinstance(one, jax.Array) or _is_array(one)]

        def call(arrays: list[Any]) -> None:
            full = list(leaves)
            for place, array in zip(places, arrays, strict=True):
                full[place] = array
            args, kwargs = jax.tree.unflatten(tree, full)
            model = self.make(**self.known, **values, rngs=nnx.Rngs(0))
            _listen(model, paths)
            if not isinstance(self.method, str):
                nnm.variables_with(model, self.method)
            elif self.method == "__call__":
                nnm.variables_of(model, *args, **kwargs)
            else:
                getattr(model, self.method)(*args, **kwargs)

        seen: dict[Path, Any] = {}
        token = _SEEN.set(seen)
        try:
            jax.eval_shape(call, [leaves[i] for i in places])
        except Exception as error:  # noqa: BLE001 - raised by `run` unless another guess mends it
            return seen, error
        finally:
            _SEEN.reset(token)
        return seen, None


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _fits(pattern: Path, path: Path) -> bool:
    return len(pattern) == len(path) and all(
        step in ("*", name) for step, name in zip(pattern, path, strict=True)
    )


def _nested(pattern: Path, measured: Mapping[Path, Any], guess: Any) -> Any:
    """Values by path as nested dicts, one level for each ``*``."""
    if "*" not in pattern:
        return next(iter(measured.values()), guess)
    at = pattern.index("*")
    found = {} if guess is None else _Each()
    for name in dict.fromkeys(path[at] for path in measured):
        below = {path[at + 1 :]: one for path, one in measured.items() if path[at] == name}
        found[name] = _nested(pattern[at + 1 :], below, guess)
    if isinstance(found, _Each):
        found.guess = _nested(pattern[at + 1 :], {}, guess)
    return found


def _listen(model: nnx.Module, patterns: list[Path]) -> None:
    """Let the submodules at such paths tell what they are first called with."""
    place = linen_place(model)
    for path, one in list(nnx.iter_modules(model)):
        names = tuple(map(str, place(path)))
        if any(_fits(pattern, names) for pattern in patterns):
            one.__class__ = _listening(type(one))
            one._linen_path = names  # type: ignore[attr-defined]


@functools.cache
def _listening(kind: Any) -> Any:
    class Listening(kind):  # type: ignore[misc]
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            inputs = inputs_of(kind.__call__, args, kwargs)
            # One by one: a tree of them all would be in the order of the names.
            shapes = {name: _shapes_alone(one) for name, one in inputs.items()}
            _SEEN.get().setdefault(self._linen_path, shapes)
            return super().__call__(*args, **kwargs)

    Listening.__name__, Listening.__qualname__ = kind.__name__, kind.__qualname__
    Listening.__module__ = kind.__module__
    return Listening


def _shapes_alone(tree: Any) -> Any:
    """What may be kept of an input after the trace, and be compared; of a module its class."""
    return jax.tree.map(_shape_alone, tree, is_leaf=lambda one: isinstance(one, nnx.Module))


def _shape_alone(value: Any) -> Any:
    if isinstance(value, nnx.Module):
        return type(value)
    return jax.ShapeDtypeStruct(value.shape, value.dtype) if _is_array(value) else value
