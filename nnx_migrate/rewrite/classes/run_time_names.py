"""Attributes of submodules whose number in Linen only the running program knows.

``self.conv(8)(x)`` builds whatever class the field holds, and Linen counts it among others of that class.
Its attribute is named for the code that builds it (``conv_0``, ``conv_1``; ``block_0``, ``block_1`` in a
loop over ``i``, as ``f"block_{i}"``), and ``@nnm.named_in_linen("conv")`` gives it Linen's name.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from nnx_migrate.edit.words import snake_case
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.loop_indexes import Indexes
from nnx_migrate.rewrite.classes.naming import Name
from nnx_migrate.rewrite.classes.reading.flow import Branch, Build, Loop, Step
from nnx_migrate.sizes.result import Site


def run_time_names(
    steps: Sequence[Step], names: Mapping[int, Name], indexes: Indexes, used_names: Collection[str]
) -> dict[int, Name] | None:
    """The attributes in place of all run-time numbers among ``names``, by id.

    None where a loop does not count its rounds, other attributes may be called the same, Linen numbers what
    is never built, or sizes are given by Linen's names.
    """
    sites = [
        (item, loops)
        for item, loops in _items_in_loops(steps, ())
        if (known := names.get(id(item.call))) is not None and known.counter_argument is not None
    ]
    stems = [_stem(item) for item, _ in sites]
    others = [one for one in names.values() if one.counter_argument is None]
    if any(_is_taken(stem, used_names, others) for stem in stems):
        return None
    if any(item.site is None or _needs_number(item.site) for item, _ in sites):
        return None
    found: dict[int, Name] = {}
    number: Counter[str] = Counter()
    for (item, loops), stem in zip(sites, stems, strict=True):
        rounds = [indexes.of(one) for one in loops]
        counted = [one.name for one in rounds if one is not None]
        if len(counted) < len(rounds):
            return None
        parts = [] if counted and stems.count(stem) == 1 else [str(number[stem])]
        number[stem] += 1
        name = "_".join([stem, *parts, *(f"{{{one}}}" for one in counted)])
        text, literal = (f'f"{name}"', None) if counted else (None, name)
        found[id(item.call)] = Name(literal, text, stem=stem)
    return found


def _items_in_loops(
    steps: Sequence[Step], loops: tuple[Loop, ...]
) -> Iterator[tuple[Item, tuple[Loop, ...]]]:
    """Every item with the loops around it, outermost first."""
    for step in steps:
        match step:
            case Build(item=item):
                yield item, loops
            case Branch(body=body, orelse=orelse):
                yield from _items_in_loops((*body, *orelse), loops)
            case Loop(body=body):
                yield from _items_in_loops(body, (*loops, step))


def _needs_number(site: Site) -> bool:
    return site.condition == "False"


def _stem(item: Item) -> str:
    """``conv`` of ``self.conv(...)``."""
    match item.call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return snake_case(name).strip("_")
        case _:
            return "layer"


def _is_taken(stem: str, used_names: Collection[str], others: Collection[Name]) -> bool:
    own = re.compile(rf"{re.escape(stem)}_\d+(_\d+)*")
    if not stem.isidentifier() or keyword.iskeyword(stem) or any(map(own.fullmatch, used_names)):
        return True
    return any(_may_be(one, stem, own) for one in others)


def _may_be(name: Name, stem: str, own: re.Pattern[str]) -> bool:
    """Whether an attribute of this name may be one of the stem's."""
    if name.literal is not None:
        return own.fullmatch(name.literal) is not None
    if name.text is not None:
        return name.text.startswith(f'f"{stem}_')
    match name.explicit:
        case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]):
            return start.startswith(f"{stem}_") or f"{stem}_".startswith(start)
        case _:
            return True
