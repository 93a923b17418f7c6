"""What a topic of the grammar is, and topics joined.

``<list>`` is drawn anew, ``<old list>`` is a name that holds one, ``<new list>`` a name for one, and a
number behind it says that two are the same: ``<old list 1>[0] = <old list 1>[-1]``. A kind with a capital
is an attribute of ``self``, which methods further down know, too: ``self.<old Width>``. A line of
``<block>`` is some statements, after which the names that they bind are forgotten. Behind ``>>>`` stands
what ``__call__`` does with what ``setup`` keeps. Templates that stand twice are drawn twice as often.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Field:
    """A kind of field of a module."""

    annotation: str
    default: str  # "" for none
    values: tuple[str, ...]  # what a call gives, read anywhere


@dataclass(frozen=True)
class Method:
    """A kind of method beside ``__call__``: ``kind`` is that of its name."""

    kind: str
    header: str  # its name is NAME
    parameters: dict[str, str]  # by kind
    result: str
    calls_layers: bool = False


@dataclass(frozen=True)
class Topic:
    """Templates by kind: expressions stand in a line each, statements apart by a line of ``---``."""

    expressions: dict[str, str] = field(default_factory=dict)
    statements: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Field] = field(default_factory=dict)
    methods: tuple[Method, ...] = ()


@dataclass(frozen=True)
class Grammar:
    """The templates of some topics."""

    expressions: dict[str, list[str]]
    statements: dict[str, list[str]]
    fields: dict[str, Field]
    methods: tuple[Method, ...]

    @classmethod
    def of(cls, topics: Iterable[Topic]) -> Grammar:
        """All templates of these topics."""
        expressions: dict[str, list[str]] = defaultdict(list)
        statements: dict[str, list[str]] = defaultdict(list)
        fields: dict[str, Field] = {}
        methods: list[Method] = []
        for topic in topics:
            for kind, text in topic.expressions.items():
                expressions[kind] += text.split("\n")
            for kind, text in topic.statements.items():
                statements[kind] += text.split("\n---\n")
            fields |= topic.fields
            methods += topic.methods
        return cls(expressions, statements, fields, tuple(methods))
