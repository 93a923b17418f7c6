"""What this process has seen, and its way into the evidence file when the process ends."""

from __future__ import annotations

import atexit
import contextlib
import io
import logging
import multiprocessing.util
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import jax
from flax import linen
from flax.core.scope import DenyList

from nnx_migrate.evidence import observations, store
from nnx_migrate.evidence.statements import statement_name
from nnx_migrate.evidence.values import dimensions, numbers
from nnx_migrate.record import intercept
from nnx_migrate.record.around import function_arguments, is_local
from nnx_migrate.record.encode import Encoder, find, importable, is_array, module_fields
from nnx_migrate.record.intercept import Call, listening
from nnx_migrate.record.probe import Probing, probe
from nnx_migrate.record.source_files import SourceFiles, file_of
from nnx_migrate.record.trace import NotAlone, Subject, code_run, trace

_PER_CLASS = 24  # distinct instances of one class that are kept
_LOOKS = 2000  # quick keys of one class; more are repetitions in another guise
_PROBED = 3  # instances of one class that are traced with changed sources
_PER_INSTANCE = 20.0  # seconds


@dataclass
class _Class:
    """A user's class and its instances so far, by digest."""

    key: observations.ClassKey
    keys: dict[Any, tuple[Any, ...]] = field(default_factory=dict)  # with what keeps the ids alive
    instances: dict[str, tuple[observations.Instance, Subject]] = field(default_factory=dict)


@dataclass
class Session:
    """Listens to a whole process."""

    output: Path
    seconds: float
    files: SourceFiles = field(default_factory=SourceFiles)
    classes: dict[type, _Class | None] = field(default_factory=dict)
    around: dict[type, Mapping[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lock: Any = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.encoder = Encoder(self.files.has_text, self.files.has_word, self.files.has_keyword)

    def on_class(self, cls: type[linen.Module], frame: FrameType) -> None:
        """Keep what the function around a class was called with."""
        try:
            filename = file_of(cls) if is_local(cls) else None
            if filename is None or self.files.file(filename) is None:
                return
            found = function_arguments(cls, frame, self.encoder)
        except Exception as error:  # noqa: BLE001 - recording must not disturb the program
            self.notes.append(f"{cls.__qualname__}: arguments around it: {type(error).__name__}")
            return
        if found:
            self.around[cls] = found

    def on_instance(self, module: linen.Module) -> None:
        """Only traces need to know where a module is built."""

    def on_call(self, module: linen.Module, function: Callable[..., Any], call: Call) -> None:
        """Keep a call that differs from those before."""
        name = getattr(function, "__name__", "")
        own = type(call.inside) is type(module) and call.inside is not None
        if module.scope is None or (name.startswith("_") and name != "__call__"):
            return
        if own and call.inside.scope is module.scope:  # type: ignore[union-attr]
            return
        found = self._class(type(module))
        if found is None or len(found.instances) >= _PER_CLASS or len(found.keys) >= _LOOKS:
            return
        key, alive = _quick_key(module, name, call)
        if key in found.keys:
            return
        with self.lock, listening(None):
            found.keys[key] = alive
            try:
                self._keep(found, module, name, call)
            except Exception as error:  # noqa: BLE001 - recording must not disturb the program
                self._note(found, error)

    def _class(self, cls: type) -> _Class | None:
        if cls not in self.classes:
            with self.lock:
                self.classes[cls] = self._key(cls)
        return self.classes[cls]

    def _key(self, cls: type) -> _Class | None:
        filename = None if cls.__module__.startswith("flax.") else file_of(cls)
        file = self.files.file(filename) if filename else None
        if file is None:
            return None
        own = find(file.module, cls.__qualname__) is cls  # a package may present it as its own
        module = file.module if own else importable(cls.__module__)
        return _Class(observations.ClassKey(file.hash, module, statement_name(cls)))

    def _keep(self, records: _Class, module: linen.Module, name: str, call: Call) -> None:
        bare = module.clone(parent=None, _deep_clone=True, _reset_names=True, name=None)
        arguments = jax.tree.map(_abstract, call.arguments(), is_leaf=is_array)
        fields = module_fields(bare)
        scope: Any = module.scope
        instance = observations.Instance(
            records.key,
            name,
            self.encoder(bare),
            {argument: self.encoder(value) for argument, value in arguments.items()},
            rngs=tuple(sorted(set(scope.rngs) - {"params"})),
            collections=tuple(sorted(scope.root._variables)),
            mutable=_mutable(module),
            outermost=call.inside is None,
            argument_kinds=call.argument_kinds(),
            arguments=self.around.get(type(module), {}),
            is_initialization=module.is_initializing(),
        )
        subject = Subject(type(module), fields, name, arguments, instance.rngs)
        earlier, _ = records.instances.get(instance.digest, (instance, subject))
        both = replace(
            earlier,
            mutable=tuple(sorted({*earlier.mutable, *instance.mutable})),
            is_initialization=earlier.is_initialization or instance.is_initialization,
        )
        records.instances[instance.digest] = (both, subject)

    def _note(self, records: _Class, error: Exception) -> None:
        text = f"{records.key.qualname}: one call was not recorded: {type(error).__name__}"
        if text not in self.notes:
            self.notes.append(text)

    def finish(self) -> None:
        """Trace what was kept and write everything; nothing of it shows."""
        found = [one for one in self.classes.values() if one is not None and one.instances]
        if not found:
            return
        with _silence(), listening(None):
            deadline = time.monotonic() + self.seconds
            digests = store.traced_digests(self.output)
            instances: list[observations.Instance] = []
            for number, cls in enumerate(sorted(found, key=_size)):
                share = (deadline - time.monotonic()) / (len(found) - number)
                instances += self._traces(cls, digests, max(share, 0.0) + time.monotonic())
            store.add(self.output, self.files.all, instances, self.notes)

    def _traces(
        self, cls: _Class, digests: frozenset[str], deadline: float
    ) -> Iterator[observations.Instance]:
        probe_count = 0
        for instance, subject in cls.instances.values():
            if instance.digest in digests:
                yield instance
                continue
            limit = min(deadline, time.monotonic() + _PER_INSTANCE)
            probing = Probing(subject, self.files, _sources(instance), limit)
            depends: frozenset[str] = frozenset()
            collections = instance.collections
            try:
                (_, collections), depends = code_run(subject, self.files)
                probe(probing) if probe_count < _PROBED else _only_once(probing)
                probe_count += 1
            except NotAlone as error:
                probing.traces[:] = [observations.Trace({}, failure=str(error))]
            except Exception as error:  # noqa: BLE001 - the class cannot run alone
                probing.traces[:] = [
                    observations.Trace({}, failure=f"it raises {type(error).__name__}")
                ]
            yield replace(
                instance,
                traces=tuple(probing.traces),
                roles=tuple(probing.roles.values()),
                collections=collections,
                depends=tuple(sorted(depends)),
            )


def _only_once(probing: Probing) -> None:
    probing.traces.append(observations.Trace({}, trace(probing.subject, probing.files)))


def _size(cls: _Class) -> int:
    return len(cls.instances)


def _sources(instance: observations.Instance) -> dict[str, int | float]:
    """What tracing changes, axes of inputs first: a large config may take all the time there is."""
    plain = {
        path: value
        for name, argument in instance.inputs.items()
        for path, value in numbers(argument, name)
    }
    return {**dimensions(instance.inputs), **dict(numbers(instance.fields, "self")), **plain}


def _abstract(value: Any) -> Any:
    return jax.ShapeDtypeStruct(value.shape, value.dtype) if is_array(value) else value


def _quick_key(module: linen.Module, name: str, call: Call) -> tuple[Any, tuple[Any, ...]]:
    """A cheap key that is equal only for calls alike, and the objects whose ids it holds."""
    alive: list[Any] = []

    def short(value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return (type(value), value)
        if is_array(value):
            return (tuple(value.shape), str(value.dtype))
        if isinstance(value, tuple | list):
            return (type(value), *(short(item) for item in value))
        if isinstance(value, linen.Module):
            own = module_fields(value).items()
            return (type(value), *((field, short(item)) for field, item in own))
        alive.append(value)
        return id(value)

    fields = [short(item) for item in module_fields(module).values()]
    leaves, treedef = jax.tree.flatten((call.args, dict(call.kwargs)))
    shorts = tuple(short(leaf) for leaf in leaves)
    call_kind = (name, module.is_initializing(), _mutable(module))
    return (*call_kind, tuple(fields), treedef, shorts), tuple(alive)


def _mutable(module: linen.Module) -> tuple[str, ...]:
    """The collections that a call names as mutable; that of an initialisation names none."""
    scope: Any = module.scope
    filter_ = scope.mutable
    if module.is_initializing() or isinstance(filter_, bool | DenyList):
        return ()
    return (filter_,) if isinstance(filter_, str) else tuple(sorted(filter_))


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """The user's code runs again here: nothing it prints, logs or warns of may show."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def begin(output: Path, seconds: float) -> None:
    """Record this process from now on, and write when it ends; so for each that it forks."""
    session = Session(output, seconds)

    def end() -> None:
        try:
            session.finish()
        except KeyboardInterrupt:
            return
        except Exception as error:  # noqa: BLE001 - the program's own end must stay as it was
            if os.environ.get("NNX_MIGRATE_DEBUG") == "1":
                sys.excepthook(type(error), error, error.__traceback__)

    def in_fork(session: Session) -> None:
        session.classes.clear()
        multiprocessing.util.Finalize(None, end, exitpriority=0)

    intercept.install(session)
    atexit.register(end)
    # A forked worker ends without atexit, but runs what multiprocessing itself finalizes.
    multiprocessing.util.register_after_fork(session, in_fork)
