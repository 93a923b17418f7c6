"""What runs right now in this thread: modules, captures, tabulations, interceptors.

A tree may mix lazy modules with Linen modules that stay Linen. Both have to find the module around
them, so as soon as somebody has loaded flax.linen its thread-local stacks serve both (flax.linen is
looked up, never imported: a process without it has stacks of its own).
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any


@dataclasses.dataclass
class CallInfo:
    """One call of a module's method, as `tabulate` lists it; values are shapes and dtypes."""

    index: int
    path: tuple[str, ...]
    module: Any
    rngs: Any
    mutable: Any
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: Any


@dataclasses.dataclass(frozen=True)
class InterceptorContext:
    """What a method interceptor is told: the module, the method's name, the method itself."""

    module: Any
    method_name: str
    orig_method: Callable[..., Any]


@dataclasses.dataclass
class CallInfos:
    """The calls that one tabulation has seen, numbered in the order they began."""

    index: int = 0
    calls: list[CallInfo] = dataclasses.field(default_factory=list)

    def get_call_index(self) -> int:
        """The number of the call that begins now."""
        self.index += 1
        return self.index - 1


class ThreadLocalStack(threading.local):
    """A stack of each thread's own, iterated from the top."""

    def __init__(self) -> None:
        self._storage: list[Any] = []

    def push(self, elem: Any) -> None:
        """Put ``elem`` on top."""
        self._storage.append(elem)

    def pop(self) -> Any:
        """Take the top element off."""
        return self._storage.pop()

    def __iter__(self) -> Iterator[Any]:
        return iter(reversed(self._storage))

    def __len__(self) -> int:
        return len(self._storage)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._storage})"


class _Own(threading.local):
    """The stacks of a process without flax.linen."""

    def __init__(self) -> None:
        self.module_stack: list[Any] = [None]
        self.capture_stack: list[Any] = []
        self.call_info_stack: list[Any] = []


class Recorder:
    """What a build learns from the call it makes: which module lives where, what was sown."""

    def __init__(self) -> None:
        self.modules: dict[tuple[str, ...], Any] = {}
        self.sown: set[tuple[str, ...]] = set()  # (collection, *path, name)


@dataclasses.dataclass
class Sown:
    """What calls of built modules sow into some collections, as Linen's trees."""

    collections: tuple[str, ...]
    values: dict[str, Any] = dataclasses.field(default_factory=dict)


class _Recording(threading.local):
    recorder: Recorder | None = None
    sown: Sown | None = None
    builder: Callable[..., bool] | None = None
    binder: Callable[[Any], Any] | None = None


_own = _Own()
_recording = _Recording()
_own_interceptors = ThreadLocalStack()
_linen: ModuleType | None = None


def linen_module() -> ModuleType | None:
    """flax's ``flax.linen.module`` if somebody has loaded it."""
    global _linen
    if _linen is None:
        _linen = sys.modules.get("flax.linen.module")
    return _linen


class _Context:
    """The stacks that count for this thread."""

    @property
    def _stacks(self) -> Any:
        linen = _linen or linen_module()
        return _own if linen is None else linen._context

    @property
    def module_stack(self) -> list[Any]:
        """Modules whose methods run, the innermost last; the first entry is None."""
        stacks = self._stacks
        stack: list[Any] = stacks.module_stack
        if stacks is not _own and type(stack) is not SharedStack:
            stack = stacks.module_stack = SharedStack(stack)
        return stack

    @property
    def innermost(self) -> Any:
        """The module, lazy or Linen, whose method runs; None outside."""
        return list.__getitem__(self.module_stack, -1)

    @property
    def capture_stack(self) -> list[Any]:
        """Filters that say which outputs become intermediates."""
        stack: list[Any] = self._stacks.capture_stack
        return stack

    @property
    def call_info_stack(self) -> list[Any]:
        """Tabulations that watch calls."""
        stack: list[Any] = self._stacks.call_info_stack
        return stack

    @property
    def interceptors(self) -> Any:
        """The method interceptors, the last one entered first."""
        linen = _linen or linen_module()
        return _own_interceptors if linen is None else linen._global_interceptor_stack

    @property
    def recorder(self) -> Recorder | None:
        """The build that watches this thread's modules, if one does."""
        return _recording.recorder

    @property
    def sown(self) -> Sown | None:
        """What is to be kept of what calls of built modules sow."""
        return _recording.sown

    @contextlib.contextmanager
    def keeping(self, sown: Sown) -> Iterator[None]:
        """Keep what is sown."""
        before, _recording.sown = _recording.sown, sown
        try:
            yield
        finally:
            _recording.sown = before

    @property
    def builder(self) -> Callable[..., bool] | None:
        """``(module, method, args, kwargs)`` -> whether it built the module just now, if one does."""
        return _recording.builder

    @contextlib.contextmanager
    def building(self, builder: Callable[..., bool]) -> Iterator[None]:
        """Build lazy modules of an explicit one where it first calls them."""
        before, _recording.builder = _recording.builder, builder
        try:
            yield
        finally:
            _recording.builder = before

    def bound(self, module: Any) -> Any:
        """A lazy module of an explicit one, bound for the call of that which runs; None for others."""
        binder = _recording.binder
        return None if binder is None else binder(module)

    @contextlib.contextmanager
    def binding(self, binder: Callable[[Any], Any]) -> Iterator[None]:
        """Bind lazy modules of an explicit one where it calls them."""
        before, _recording.binder = _recording.binder, binder
        try:
            yield
        finally:
            _recording.binder = before

    @contextlib.contextmanager
    def outside(self) -> Iterator[None]:
        """Outside of all modules: what is built here is a definition."""
        self.module_stack.append(None)
        try:
            yield
        finally:
            self.module_stack.pop()

    @contextlib.contextmanager
    def without_tabulation(self) -> Iterator[None]:
        """Out of sight of tabulations."""
        stack = self.call_info_stack
        watching, stack[:] = stack[:], []
        try:
            yield
        finally:
            stack[:] = watching

    @contextlib.contextmanager
    def recording(self) -> Iterator[Recorder]:
        """Watch which modules are bound and what is sown."""
        before, recorder = _recording.recorder, Recorder()
        _recording.recorder = recorder
        try:
            yield recorder
        finally:
            _recording.recorder = before


class SharedStack(list[Any]):
    """Linen's stack of modules, on which a lazy module looks to Linen like a Linen module."""

    host: Callable[[Any], Any]  # set by core.mixed

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return found if found is None or isinstance(index, slice) else SharedStack.host(found)


context = _Context()


@contextlib.contextmanager
def tabulate_context() -> Iterator[CallInfos]:
    """Watch the calls of all modules in this thread."""
    infos = CallInfos()
    stack = context.call_info_stack
    stack.append(infos)
    try:
        yield infos
    finally:
        stack.pop()
