"""Which nodes a visit that makes edits has to enter."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

# Nodes that pairing knows: whether an edit lies inside is known of them.
_KNOWN = (cst.BaseExpression, cst.BaseSmallStatement, cst.BaseCompoundStatement)
# One ast node stands for several of these.
_CHAINS = (cst.BooleanOperation, cst.BaseString)
_BLANK = (cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine, cst.Newline)
_LINES = (cst.SimpleStatementLine, cst.SimpleStatementSuite)


class Kinds(dict[type, bool]):
    """Whether nodes of a type are some of others: ``isinstance`` would ask abstract classes each time."""

    def __init__(self, *kinds: type, but: tuple[type, ...] = ()) -> None:
        """Nodes of these kinds, but of those."""
        super().__init__()
        self._kinds, self._others = kinds, but

    def __missing__(self, kind: type) -> bool:
        """Ask once."""
        self[kind] = issubclass(kind, self._kinds) and not issubclass(kind, self._others)
        return self[kind]


_IS_KNOWN, _IS_BLANK = Kinds(*_KNOWN, but=_CHAINS), Kinds(*_BLANK)


def may_hold_edits(node: cst.CSTNode, leads: Callable[[cst.CSTNode], bool]) -> bool:
    """Whether an edit may lie inside a node.

    Args:
        leads: whether a node that pairing knows is edited, or leads to one that is.
    """
    kind = type(node)
    if _IS_BLANK[kind]:
        return False
    if _IS_KNOWN[kind]:
        return leads(node)
    return not isinstance(node, _LINES) or any(leads(one) for one in node.body)
