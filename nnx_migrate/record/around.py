"""What a class statement inside a function reads around it: the arguments of that function."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import FrameType

from flax import linen

from nnx_migrate.evidence.values import EncodedValue, unreadable
from nnx_migrate.record.encode import Encoder

_LOCALS = ".<locals>."
_FRAMES = 12  # of metaclasses and decorators between the statement and Linen


def is_local(cls: type) -> bool:
    """Whether a class statement stands in a function."""
    return _LOCALS in cls.__qualname__


def function_arguments(
    cls: type[linen.Module], frame: FrameType | None, encoder: Encoder
) -> Mapping[str, EncodedValue]:
    """Arguments of the function that defines ``cls``, as they are now.

    Only those that can be written down whole; ``frame`` is the statement's or one that it called.
    """
    owner, inside, _ = cls.__qualname__.rpartition(_LOCALS)
    for _ in range(_FRAMES if inside else 0):
        if frame is None:
            return {}
        code = frame.f_code
        if code.co_qualname == owner and frame.f_globals.get("__name__") == cls.__module__:
            frame_values = inspect.getargvalues(frame)
            names = [
                *frame_values.args,
                *filter(None, (frame_values.varargs, frame_values.keywords)),
            ]
            found = {
                name: encoder(frame_values.locals[name])
                for name in names
                if name in frame_values.locals
            }
            return {name: one for name, one in found.items() if not any(unreadable(one))}
        frame = frame.f_back
    return {}
