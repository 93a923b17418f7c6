"""Dataclasses whose keyword-only fields come last: ``flax.linen.kw_only_dataclasses``.

Python's own ``kw_only`` does it since 3.10; what is added is a marker in the annotations, fields from
outside of the class's body, and that a field once keyword-only stays so in subclasses.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any


class _KwOnlyType:
    def __repr__(self) -> str:
        return "KW_ONLY"


KW_ONLY = _KwOnlyType()


def field(*, metadata: Any = None, kw_only: Any = dataclasses.MISSING, **kwargs: Any) -> Any:
    """A `dataclasses.field`; one that is keyword-only needs a default.

    Raises:
        ValueError: it has none.
    """
    only = kw_only is not dataclasses.MISSING and bool(kw_only)
    if only and not {"default", "default_factory"} & kwargs.keys():
        raise ValueError("Keyword-only fields with no default are not supported.")
    if only:
        kwargs["kw_only"] = True
    return dataclasses.field(metadata=metadata, **kwargs)


def dataclass(cls: type | None = None, extra_fields: Any = None, **kwargs: Any) -> Any:
    """`dataclasses.dataclass`, also with a ``KW_ONLY`` marker: ``_: KW_ONLY`` among the annotations.

    ``extra_fields``: further fields as (name, type, field), after those of the class.
    """

    def transform(cls: type) -> type:
        _mark(cls, extra_fields or ())
        return dataclasses.dataclass(**kwargs)(cls)

    return transform if cls is None else transform(cls)


def _mark(cls: type, extra_fields: Any) -> None:
    """Write into the class's body which fields are keyword-only, and the extra ones."""
    annotations = dict(inspect.get_annotations(cls))
    markers = [name for name, kind in annotations.items() if kind is KW_ONLY]
    if len(markers) > 1:
        raise TypeError("Multiple KW_ONLY markers")
    names = list(annotations)
    after = names[names.index(markers[0]) + 1 :] if markers else []
    base_fields = getattr(cls, dataclasses._FIELDS, {})  # type: ignore[attr-defined]
    kw_only_names = {
        name for name, one in base_fields.items() if getattr(one, "kw_only", False) is True
    }
    for name in names:
        if name in after or name in kw_only_names:
            _make_kw_only(cls, name, name in after)
    for name in markers:
        del annotations[name]
    for name, kind, default in extra_fields:
        if not (isinstance(name, str) and isinstance(default, dataclasses.Field)):
            message = "Expected extra_fields to a be a list of (name, type, Field) tuples."
            raise ValueError(message)  # noqa: TRY004 - flax raises this one
        setattr(cls, name, default)
        annotations.pop(name, None)
        annotations[name] = kind
    cls.__annotations__ = annotations


def _make_kw_only(cls: type, name: str, is_kw_only: bool) -> None:
    default = vars(cls).get(name, dataclasses.MISSING)
    if isinstance(default, dataclasses.Field):
        default.kw_only = True
    elif default is not dataclasses.MISSING:
        setattr(cls, name, dataclasses.field(default=default, kw_only=True))
    elif is_kw_only and not hasattr(cls, name):
        raise ValueError("Keyword-only fields with no default are not supported.")
    else:
        setattr(cls, name, dataclasses.field(default=getattr(cls, name), kw_only=True))
