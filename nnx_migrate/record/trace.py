"""Trace one class alone, abstractly, and tell what its submodules were called with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import jax
from flax import linen

from nnx_migrate.evidence import observations
from nnx_migrate.evidence.values import Shape, arrays
from nnx_migrate.record.encode import Encoder, is_array
from nnx_migrate.record.intercept import Call, listening
from nnx_migrate.record.positions import caller, constructor_of
from nnx_migrate.record.source_files import SourceFiles

_SITE = "_nnx_migrate_site"
_Path = tuple[str, ...]


class NotAlone(Exception):
    """The class cannot be called alone as it was called where it was recorded."""


@dataclass(frozen=True)
class Subject:
    """What is traced: a class with its fields, and the call to initialise it with."""

    cls: type[linen.Module]
    fields: Mapping[str, Any]
    method: str
    arguments: Mapping[str, Any]  # bound; arrays are abstract
    rngs: tuple[str, ...]


@dataclass
class _Collector:
    """Listens to one trace: which place built each path, and the shapes of every call."""

    files: SourceFiles
    shapes_of: Callable[[Mapping[str, Any]], tuple[tuple[str, Shape], ...]]
    sites: dict[_Path, tuple[observations.Place, int]] = field(default_factory=dict)
    calls: dict[tuple[Any, ...], None] = field(default_factory=dict)
    count: int = 0
    own: list[tuple[str, dict[str, Shape]]] = field(default_factory=list)

    def on_class(self, cls: type[linen.Module], frame: FrameType) -> None:
        """Only the program's own classes count."""

    def on_instance(self, module: linen.Module) -> None:
        """Remember the place, on the module until its path is known.

        A module that ``setup`` assigns passes here again with its scope; one that a lifted
        transform wraps is only ever called as the wrapped class, at the same path.
        """
        if getattr(module, _SITE, None) is None:
            place = constructor_of(self.files)
            if place is not None:
                self.count += 1
                object.__setattr__(module, _SITE, (place, self.count))
        self._locate(module)

    def _locate(self, module: linen.Module) -> None:
        site = getattr(module, _SITE, None)
        if site is not None and module.scope is not None:
            self.sites.setdefault(tuple(module.scope.path), site)

    def on_call(self, module: linen.Module, function: Callable[..., Any], call: Call) -> None:
        """Note one call of a submodule."""
        if module.scope is None:
            return
        self._locate(module)
        path = tuple(module.scope.path)
        if not path:
            own = dict(self.shapes_of(call.arguments()))
            self.own.append((getattr(function, "__name__", ""), own))
        if not path or len(path) > 2:
            return
        where = caller(self.files)
        place = (where.line, where.column) if where else (0, 0)
        builds = f"{type(module).__module__}.{type(module).__qualname__}"
        shapes = self.shapes_of(call.arguments())
        self.calls[(path, builds, getattr(function, "__name__", ""), shapes, place)] = None

    def submodule_calls(self) -> tuple[observations.Call, ...]:
        """The calls of everything the class itself built."""
        order = sorted((count, path) for path, (_, count) in self.sites.items() if len(path) == 1)
        ordinals: dict[_Path, int] = {}
        built: dict[observations.Place, int] = {}
        for _, path in order:
            place = self.sites[path][0]
            ordinals[path] = built.get(place, 0)
            built[place] = ordinals[path] + 1
        return tuple(
            observations.Call(
                self.sites[path[:1]][0],
                ordinals[path[:1]],
                builds,
                path[0],
                "/".join(path[1:]),
                method,
                shapes,
                *place,
            )
            for path, builds, method, shapes, place in self.calls
            if path[:1] in ordinals
        )


def trace(subject: Subject, files: SourceFiles) -> tuple[observations.Call, ...]:
    """Initialise the subject abstractly and return its submodules' calls.

    Raises what the class's own code raises, and NotAlone.
    """
    return initialization(subject, files)[0]


def initialization(
    subject: Subject, files: SourceFiles
) -> tuple[tuple[observations.Call, ...], tuple[str, ...]]:
    """The calls of a subject's submodules, and the collections that its initialisation makes.

    Raises what the class's own code raises, and NotAlone.
    """
    encoder = Encoder(lambda text: True, lambda word: False, lambda word: False)

    def shapes_of(arguments: Mapping[str, Any]) -> tuple[tuple[str, Shape], ...]:
        return tuple(
            found for name, value in arguments.items() for found in arrays(encoder(value), name)
        )

    collector = _Collector(files, shapes_of)
    with listening(None):
        module = subject.cls(**subject.fields)
    leaves, treedef = jax.tree.flatten(dict(subject.arguments), is_leaf=is_array)
    dynamic = [index for index, leaf in enumerate(leaves) if is_array(leaf)]

    def initialise(key: Any, values: Sequence[Any]) -> Any:
        all_leaves = list(leaves)
        for index, value in zip(dynamic, values, strict=True):
            all_leaves[index] = value
        args, kwargs = positional(subject, jax.tree.unflatten(treedef, all_leaves))
        rngs = {name: jax.random.fold_in(key, i) for i, name in enumerate(subject.rngs)}
        streams = {"params": key, **rngs}
        with listening(collector):
            return module.init(streams, *args, method=subject.method, **kwargs)

    key = jax.eval_shape(lambda: jax.random.key(0))
    try:
        variables = jax.eval_shape(initialise, key, [leaves[index] for index in dynamic])
    finally:  # the reason, also where what the decorator made of the call fails
        own_call = (subject.method, dict(shapes_of(subject.arguments)))
        if collector.own and own_call not in collector.own:
            raise NotAlone(f"a decorator stands between {subject.method} and its callers")
    return collector.submodule_calls(), tuple(sorted(variables))


def positional(
    subject: Subject, arguments: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Bound arguments as a call takes them."""
    import inspect

    signature = inspect.signature(getattr(subject.cls, subject.method))
    bound = inspect.BoundArguments(signature, {next(iter(signature.parameters)): None, **arguments})
    return bound.args[1:], dict(bound.kwargs)


def code_run(
    subject: Subject, files: SourceFiles
) -> tuple[tuple[tuple[observations.Call, ...], tuple[str, ...]], frozenset[str]]:
    """Initialise a subject and tell the hashes of the user's files whose code ran."""
    codes: set[CodeType] = set()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        result = initialization(subject, files)
    finally:
        sys.setprofile(before)
    found = (files.file(name) for name in {code.co_filename for code in codes})
    return result, frozenset(file.hash for file in found if file is not None)
