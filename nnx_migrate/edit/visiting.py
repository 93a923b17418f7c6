"""Which nodes a visit that makes edits has to enter."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

# Nodes that pairing knows: whether an edit lies inside is known of them.
_KNOWN = (cst.BaseExpression, cst.BaseSmallStatement, cst.BaseCompoundStatement)
# One ast node stands for several of these.
_CHAINS = (cst.BooleanOperation, cst.BaseString)
_BLANK = (cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine, cst.Newline)


def may_hold_edits(node: cst.CSTNode, leads: Callable[[cst.CSTNode], bool]) -> bool:
    """Whether an edit may lie inside a node.

    Args:
        leads: whether a node that pairing knows is edited, or leads to one that is.
    """
    if isinstance(node, cst.SimpleStatementLine | cst.SimpleStatementSuite):
        return any(leads(one) for one in node.body)
    if isinstance(node, _KNOWN) and not isinstance(node, _CHAINS):
        return leads(node)
    return not isinstance(node, _BLANK)
