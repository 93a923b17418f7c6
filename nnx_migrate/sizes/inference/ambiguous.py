"""Carried sizes that one local variable cannot hold.

A loop inside an unrolled loop, or a list that two loops run over, is met more than once. Where the
sizes it carries differ from time to time nobody knows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.values import Use
from nnx_migrate.sizes.interpreter import Interpreter

Carries = list[tuple[str, Expr, Expr]]


def drop_ambiguous(interpreter: Interpreter) -> None:
    """Keep each carried size once, and forget those that differ from time to time."""
    names = {name for carries in interpreter.carried.values() for name in _ambiguous(carries)}
    interpreter.carried = {
        key: [one for one in dict.fromkeys(carries) if not _reads(one, names)]
        for key, carries in interpreter.carried.items()
    }
    if not names:
        return
    for uses in interpreter.root.records.values():
        uses[:] = [_forgetting(use, names) for use in uses]
    for key, text in interpreter.statics.items():
        if text is not None and not names.isdisjoint(_words(text)):
            interpreter.statics[key] = None


def used_carries(
    carried: Mapping[int, Sequence[tuple[str, str, str]]], texts: Iterable[str]
) -> dict[int, tuple[tuple[str, str, str], ...]]:
    """The carried sizes that some text, or the update of another such size, reads."""
    read = {word for text in texts for word in _words(text)}
    entries = [one for carries in carried.values() for one in carries]
    while True:
        more = {w for name, *both in entries if name in read for text in both for w in _words(text)}
        if more <= read:
            break
        read |= more
    return {
        key: tuple(one for one in carries if one[0] in read) for key, carries in carried.items()
    }


def _ambiguous(carries: Carries) -> set[str]:
    names = [name for name, _, _ in dict.fromkeys(carries)]
    return {name for name in names if names.count(name) > 1}


def _reads(carry: tuple[str, Expr, Expr], names: set[str]) -> bool:
    name, first, last = carry
    return name in names or not names.isdisjoint(first.names | last.names)


def _forgetting(use: Use, names: set[str]) -> Use:
    sizes = {
        key: None if size is not None and size.names & names else size
        for key, size in use.sizes.items()
    }
    return replace(use, sizes=sizes, arguments=use.arguments)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))
