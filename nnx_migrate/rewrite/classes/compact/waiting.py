"""What is built waits for the size that it needs: ``nn.Dense(1)(self.body()(x))``.

Linen builds the outer one first, and ``__init__`` last. Each has keys of its own, so that the order is free
where names are: those that count at run time are told Linen's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import ItemKind
from nnx_migrate.rewrite.classes.naming import Name
from nnx_migrate.rewrite.classes.reading.flow import Branch, Build, Loop, Step, builds


def by_need(steps: Sequence[Step], names: Mapping[int, Name]) -> Sequence[Step]:
    """The steps of one block in the order in which ``__init__`` takes them."""
    sites = (step.item.site for step in steps if isinstance(step, Build))
    widths = {site.out_variable for site in sites if site is not None} - {None}
    if not widths:
        return steps
    found = [*steps]
    for place in range(len(found) - 1, -1, -1):
        needed = _needs(found[place], names) & widths
        last = place
        for other in range(place + 1, len(found)) if needed else ():
            later = found[other]
            if not isinstance(later, Build):
                break
            if later.item.site is not None and later.item.site.out_variable in needed:
                last = other
        found.insert(last, found.pop(place))
    return found


def _needs(step: Step, names: Mapping[int, Name]) -> frozenset[str]:
    """What the sizes read of something built that may wait; of anything else nothing."""
    if not isinstance(step, Build) or step.item.site is None:
        return frozenset()
    name = names.get(id(step.item.call), Name())
    is_free = step.item.kind is ItemKind.SITE and name.counter_argument is None
    return step.item.site.size_names if is_free else frozenset()


def order_in_linen(steps: Sequence[Step], names: Mapping[int, Name]) -> tuple[str, ...]:
    """The attributes that count at run time in the order in which Linen builds them; none where that is
    the order of ``__init__``.

    Raises:
      Refused: one that waits is built in a loop.
    """
    if not any(_is_changed(block, names) for block in _blocks(steps)):
        return ()
    found = []
    for item in builds(steps):
        name = names.get(id(item.call), Name())
        if name.stem is not None and name.literal is None:
            raise ClassRefused(
                item.call,
                "what is built waits for a size, and Linen numbers what is built in a loop",
                "give the submodules names",
                "compact",
            )
        if name.stem is not None and name.literal is not None:
            found.append(name.literal)
    return tuple(found)


def _is_changed(block: Sequence[Step], names: Mapping[int, Name]) -> bool:
    counted = [
        [id(one) for one in order if isinstance(one, Build) and _is_counted(one, names)]
        for order in (block, by_need(block, names))
    ]
    return counted[0] != counted[1]


def _is_counted(step: Build, names: Mapping[int, Name]) -> bool:
    return names.get(id(step.item.call), Name()).stem is not None


def _blocks(steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
    yield steps
    for step in steps:
        match step:
            case Branch(body=body, orelse=orelse):
                yield from _blocks(body)
                yield from _blocks(orelse)
            case Loop(body=body):
                yield from _blocks(body)
