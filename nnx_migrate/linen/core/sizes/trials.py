"""Sizes of submodules' inputs: found by calling the module, built with guesses, without values."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from flax.core.scope import DenyList

from nnx_migrate import nn as nnm
from nnx_migrate.linen.core.sizes.arrays import is_array
from nnx_migrate.linen.core.sizes.declaration import Path, Size, UnknownSize, inputs_of
from nnx_migrate.linen.core.sizes.names import NamedSize
from nnx_migrate.nn.calls.objects import copied
from nnx_migrate.nn.variables.sharing import modules_in
from nnx_migrate.nn.variables.state import Running, running
from nnx_migrate.numerics.known_values import known_values

_RANKS = (3, 2, 4, 1, 5)
_TRIALS = 400  # guesses before giving up: a deep model may need one for each layer
_ANY = 64 * 15  # of what no call reaches: it is built, too
# Widths that most layers can be built with; the last ones suit most numbers of heads and groups.
_GUESSES = (64, 128, 32, 1, 256, 16, 8, 4, 512, _ANY, 48 * 5 * 7 * 9 * 11)
_UNMADE = DenyList(("params", "intermediates", "perturbations"))  # as in a call of the module alone
_GIVE_KEYS: contextvars.ContextVar[Callable[[Any], Any] | None] = contextvars.ContextVar(
    "keys", default=None
)
_CALL_INPUTS: contextvars.ContextVar[dict[Path, Any]] = contextvars.ContextVar("seen")


@contextlib.contextmanager
def giving_keys(give: Callable[[Any], Any] | None) -> Iterator[None]:
    """Let trials have the keys of the call that they measure for: draws may decide what that reaches.

    Args:
      give: sets them in a module; None for modules inside of one on trial.
    """
    token = _GIVE_KEYS.set(give)
    try:
        yield
    finally:
        _GIVE_KEYS.reset(token)


def class_of(make: Any) -> Any:
    """The class that a partial of a class makes."""
    while isinstance(make, functools.partial):
        make = make.func
    return make


def some_value(size: Size) -> Any:
    """A value with which a module can be built whatever its size is."""
    return _ANY if size.axis is not None else (_ANY,) * 3


def called_on(
    make: Callable[..., Any],
    sizes: Mapping[str, Size],
    known_sizes: dict[str, Any],
    method: str | Callable[[Any], Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> dict[str, Any]:
    """Sizes in the inputs with which a method or function calls the module or its submodules."""
    found = Trials(make, known_sizes, sizes, method, args, kwargs).run()
    return {name: one for name, one in found.items() if one is not None}


@dataclasses.dataclass
class Trials:
    """Finds the sizes of submodules' inputs by trial."""

    make: Callable[..., Any]
    known_sizes: dict[str, Any]
    sizes: Mapping[str, Size]
    method: str | Callable[[Any], Any]  # its name, or a function of the module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def run(self) -> dict[str, Any]:
        """The sizes.

        Raises:
          what the call raises with them.
        """
        call_inputs: dict[Path, Any] = {}
        guesses = self._guesses()
        shape = next(guesses)
        for _ in range(_TRIALS):
            values = {
                name: self._value(size, call_inputs, shape) for name, size in self.sizes.items()
            }
            now, error = self._trial(values)
            if error is None and all(call_inputs.get(path) == one for path, one in now.items()):
                return self._result(now)
            if error is not None and all(call_inputs.get(path) == one for path, one in now.items()):
                following = next(guesses, None)  # it cannot be built, or called, with this guess
                if following is None:
                    raise error
                shape = following
            call_inputs |= now
        raise UnknownSize(f"{class_of(self.make).__qualname__}: its sizes depend on themselves")

    def _result(self, call_inputs: dict[Path, Any]) -> dict[str, Any]:
        found = {name: self._one_size(size, call_inputs) for name, size in self.sizes.items()}
        fields = {name for name, one in found.items() if one is None and self._is_field(name)}
        if not fields:
            return found
        # The guess for what is a field with the name of a size may be in what was measured.
        rest = {name: one for name, one in self.sizes.items() if name not in fields}
        return {**dict.fromkeys(fields), **dataclasses.replace(self, sizes=rest).run()}

    def _is_field(self, name: str) -> bool:
        """Whether what is measured nowhere may be left out."""
        default = inspect.signature(class_of(self.make).__init__).parameters[name].default
        return isinstance(self.sizes[name], NamedSize) and default is not inspect.Parameter.empty

    def _guesses(self) -> Iterator[tuple[int, ...]]:
        """Shapes of inputs: those of the call with other widths, then with other numbers of axes."""
        leaves = [jnp.shape(one) for one in jax.tree.leaves((self.args, self.kwargs))]
        of_inputs = (shape[-1] for shape in leaves if shape)
        widths = dict.fromkeys((_GUESSES[0], *of_inputs, *_GUESSES[1:], *self._numbers()))
        lead = next((shape[:-1] for shape in leaves if shape), ())
        yield from ((*lead, width) for width in widths)
        if any(size.axis is None for size in self.sizes.values()):
            every = (*lead, *(1,) * max(_RANKS))
            yield from ((*every[: rank - 1], _GUESSES[0]) for rank in _RANKS)
            yield from ((_GUESSES[0],) * rank for rank in _RANKS)  # halves of 1 are nothing

    def _numbers(self) -> Iterator[int]:
        """Numbers that the class is built with: widths, maybe."""
        make = self.make
        while isinstance(make, functools.partial):
            yield from (
                one for one in jax.tree.leaves(make.keywords) if type(one) is int and one > 0
            )
            make = make.func

    def _value(self, size: Size, call_inputs: dict[Path, Any], shape: tuple[int, ...]) -> Any:
        """A guess that agrees with all that was measured."""
        size_in_inputs = next(iter(_sizes_by_path(size, call_inputs).values()), None)
        if size_in_inputs is not None:
            return size_in_inputs
        return shape[-1] if size.axis is not None else shape

    def _is_own(self, size: Size) -> bool:
        """Whether it is a size of an input of another method of the module itself."""
        return not size.path and size.method != self.method

    def _one_size(self, size: Size, call_inputs: dict[Path, Any]) -> Any:
        sizes_by_path = _sizes_by_path(size, call_inputs)
        if isinstance(size, NamedSize):
            size.require_one(sizes_by_path)
        return next(iter(sizes_by_path.values()), None)

    def _trial(self, values: dict[str, Any]) -> tuple[dict[Path, Any], Exception | None]:
        """The inputs of the submodules' first calls, as shapes, and how the call ended."""
        give_keys = _GIVE_KEYS.get()

        def call(key: jax.Array) -> None:
            args, kwargs = copied(jax.tree.map(lambda one: one, (self.args, self.kwargs)))
            model = self.make(**self.known_sizes, **values, rngs=nnx.Rngs(key))
            # What the module itself is called with is known, where that is the call.
            _listen(model, self.sizes.values(), with_root=self.method != "__call__")
            for name in sorted({one.method for one in self.sizes.values() if self._is_own(one)}):
                kind: Any = type(model)
                model.__class__ = _listening(kind, name, _path_of(name))
            if give_keys is not None:
                give_keys(model)
            if not isinstance(self.method, str):
                nnm.variables_with(model, self.method)
            elif self.method == "__call__":
                nnm.variables_of(model, *args, **kwargs)
            else:
                with running(Running(_UNMADE, module=model)):
                    getattr(model, self.method)(*args, **kwargs)

        call_inputs: dict[Path, Any] = {}
        token = _CALL_INPUTS.set(call_inputs)
        try:
            with known_values(), giving_keys(None):  # all but what hangs on the key
                jax.eval_shape(call, jax.eval_shape(jax.random.key, 0))
        except Exception as error:  # noqa: BLE001 - raised by `run` unless another guess mends it
            return call_inputs, error
        finally:
            _CALL_INPUTS.reset(token)
        return call_inputs, None


def _sizes_by_path(size: Size, call_inputs: Mapping[Path, Any]) -> dict[Path, Any]:
    """What the inputs of submodules, or of a method of the module itself, show of a size, by their paths."""
    found = {path: size.read_at(path, inputs) for path, inputs in call_inputs.items()}
    if not size.path and (own := _path_of(size.method)) in call_inputs:
        found[own] = size.read(call_inputs[own])
    return {path: one for path, one in found.items() if one is not None}


def _path_of(method: str) -> Path:
    """What stands for calls of a method of the module itself, beside scope paths."""
    return (f"{method}()",)


def _listen(model: nnx.Module, sizes: Iterable[Size], *, with_root: bool) -> None:
    """Let the modules that may show such sizes tell what they are first called with."""
    for path, one in modules_in(model):
        if (path or with_root) and any(size.fits(path) for size in sizes):
            # Sizes of a lifted class are those of what its body sees: without the lifted axis.
            method = "_one_layer" if hasattr(one, "_one_layer") else "__call__"
            one.__class__ = _listening(type(one), method)
            one._linen_path = path  # type: ignore[attr-defined]


@functools.cache
def _listening(kind: Any, method: str, path: Path | None = None) -> Any:
    """A class whose method tells what it is first called with: at a path, or that of the module."""
    call = getattr(kind, method)

    @functools.wraps(call)
    def listening(self: Any, *args: Any, **kwargs: Any) -> Any:
        _note(self._linen_path if path is None else path, inputs_of(call, args, kwargs))
        return call(self, *args, **kwargs)

    body = {method: listening, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind,), body)


def _note(path: Path, inputs: Mapping[str, Any]) -> None:
    """Keep the shapes of the inputs of a first call."""
    # One by one: a tree of them all would be in the order of the names.
    _CALL_INPUTS.get().setdefault(path, {name: _shapes_alone(one) for name, one in inputs.items()})


def _shapes_alone(tree: Any) -> Any:
    """What may be kept of an input after the trace, and be compared; of a module its class."""
    return jax.tree.map(_shape_alone, tree, is_leaf=lambda one: isinstance(one, nnx.Module))


def _shape_alone(value: Any) -> Any:
    if isinstance(value, nnx.Module):
        return type(value)
    return jax.ShapeDtypeStruct(value.shape, value.dtype) if is_array(value) else value
