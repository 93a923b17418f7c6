"""Sets that grow by what is in them, until nothing new is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def grown(start: Iterable[T], more: Callable[[frozenset[T]], Iterable[T]]) -> frozenset[T]:
    """``start`` with all that ``more`` finds by the whole of what was found before."""
    found = frozenset(start)
    while True:
        wider = found.union(more(found))
        if wider == found:
            return found
        found = wider


def reachable(start: Iterable[T], links: Callable[[T], Iterable[T]]) -> set[T]:
    """``start`` with all that ``links`` leads to from one of them, at any remove."""
    found = set(start)
    todo = [*found]
    while todo:
        fresh = set(links(todo.pop())) - found
        found |= fresh
        todo += fresh
    return found
