"""Objects of the project's other classes that ``setup`` makes, and that calls change.

Linen runs ``setup`` anew in each call, so that a table kept in ``self.rotary = Rotary(dim)`` lives for one
call. An NNX module would keep it, also what one trace left there for the next.
"""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.reading.objects import changing_method, plain_class
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each

RULE = "setup"


def check_objects(project: Project, scope: Scope, value: ast.expr) -> None:
    """Refuse an attribute that holds what its methods change.

    Raises:
      Refused: an object of a class with such a method is made here.
    """
    for node in each(value, ast.Call):
        cls = plain_class(project, scope, node)
        if cls is not None and (method := changing_method(cls)):
            raise ClassRefused(
                node,
                f"{cls.node.name}.{method} changes its object, which Linen makes anew in each call",
                f"return what {method} keeps",
                RULE,
            )
