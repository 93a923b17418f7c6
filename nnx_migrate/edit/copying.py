"""Copies of nodes for places that have their own comments and line ends."""

from __future__ import annotations

import libcst as cst


class CommentRemover(cst.CSTTransformer):
    """Drops every comment, and the lines that hold nothing else."""

    def leave_TrailingWhitespace(  # noqa: D102
        self, original_node: cst.TrailingWhitespace, updated_node: cst.TrailingWhitespace
    ) -> cst.TrailingWhitespace:
        if updated_node.comment is None:
            return updated_node
        return updated_node.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))

    def leave_EmptyLine(  # noqa: D102
        self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine
    ) -> cst.EmptyLine | cst.RemovalSentinel:
        return updated_node if updated_node.comment is None else cst.RemoveFromParent()
