"""``__post_init__``, which a dataclass runs when all fields are set, before ``setup``.

It stays a method. The first constructor of the class' line calls it after the fields, so that it runs
once and sees what subclasses set, as in Linen. What it assigns to fields is frozen as Linen freezes it;
the call of ``linen.Module``'s own ``__post_init__`` goes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from nnx_migrate.edit.calls import call
from nnx_migrate.edit.expressions import Expression
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import GONE, Statement, assign, skip
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.inheritance import BaseParts
from nnx_migrate.rewrite.classes.items import receiver_of
from nnx_migrate.rewrite.classes.reading.arrays import may_be_array
from nnx_migrate.rewrite.classes.reading.attributes import statements
from nnx_migrate.rewrite.classes.uses.references import Edits, Remarks
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

RULE = "post-init"
_NAME = "__post_init__"
_PLAIN = (ast.Constant, ast.Compare, ast.BoolOp, ast.JoinedStr)


def calls_post_init(cls: ClassInfo, base_parts: BaseParts) -> bool:
    """Whether the constructor of ``cls`` itself runs ``__post_init__``.

    Raises:
      Refused: the base builds its submodules first, in a constructor that does not run it.
    """
    if cls.find(_NAME) is None:
        return False
    if not base_parts.delegates:
        return True
    base = next(one for one in cls.parents if one.linen)
    if base.find(_NAME) is None:
        raise ClassRefused(
            cls.node,
            f"it defines __post_init__, and its base {base.name} builds without one",
            "give the base a __post_init__ as well",
            RULE,
        )
    return False


def post_init_edits(project: Project, cls: ClassInfo, remarks: Remarks) -> Edits:
    """Edits inside the class' own ``__post_init__``.

    Raises:
      Refused: it sets what an NNX module does not keep as it is.
    """
    method = cls.methods.get(_NAME)
    if method is None:
        return {}
    receiver = receiver_of(method)
    fields = cls.field_names
    edits: Edits = {}
    for statement in statements(method.body):
        if _is_super(statement):
            if not any(_NAME in one.methods for one in cls.mro[1:]):
                edits[id(statement)] = GONE
            continue
        for name, value in _assignments(statement, receiver):
            _check(project, cls, method, statement, name, value, fields)
        _freeze(statement, receiver, fields, edits, remarks)
    if all(edits.get(id(one)) == GONE for one in method.body):
        edits[id(method.body[0])] = (skip(),)
    return edits


def _is_super(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and ast.unparse(statement) == f"super().{_NAME}()"


def _assignments(statement: ast.stmt, receiver: str) -> Iterator[tuple[str, ast.expr | None]]:
    """Attributes of the module that a statement sets, and the value where it shows."""
    targets: list[ast.expr] = []
    value = getattr(statement, "value", None)
    match statement:
        case ast.Assign():
            targets = statement.targets
        case ast.AnnAssign() | ast.AugAssign():
            targets = [statement.target]
        case ast.Expr(value=ast.Call(args=[_, ast.Constant(value=str(name)), given_value])):
            if _is_object_setattr(statement.value):
                yield name, given_value
    for target in targets:
        for node in walk(target):
            match node:
                case ast.Attribute(value=ast.Name(id=owner), attr=attr, ctx=ast.Store()):
                    if owner == receiver:
                        yield attr, value if node is target else None


def _is_object_setattr(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "object.__setattr__"


def _check(
    project: Project,
    cls: ClassInfo,
    method: ast.FunctionDef,
    statement: ast.stmt,
    name: str,
    value: ast.expr | None,
    fields: frozenset[str],
) -> None:
    scope = cls.scope.enter(method)
    array = value is None or may_be_array(project, scope, value)
    if array and name not in fields:
        raise ClassRefused(
            statement,
            f"__post_init__ sets {name!r}, which may be an array, and an NNX module would keep an"
            " array as state",
            "set it in setup, or make it a field",
            RULE,
        )


def _freeze(
    statement: ast.stmt, receiver: str, fields: frozenset[str], edits: Edits, remarks: Remarks
) -> None:
    """Write one assignment so that fields hold what Linen's fields hold."""
    for name, value in _assignments(statement, receiver):
        match statement:
            case ast.Expr():
                assert value is not None
                edits[id(statement)] = _set(receiver, name, value, name in fields)
                remarks.imports |= {"nnm"} if name in fields else set()
            case ast.Assign() | ast.AnnAssign() if name in fields and value is not None:
                if not isinstance(value, _PLAIN):
                    remarks.imports.add("nnm")
                    edits[id(value)] = _wrap(value)
            case _ if name in fields:
                raise ClassRefused(
                    statement,
                    f"__post_init__ sets the field {name!r} together with something else",
                    "assign it on a line of its own",
                    RULE,
                )


def _wrap(value: ast.expr) -> Callable[[Renderer], Expression]:
    return lambda renderer: call("nnm.as_field", renderer.inner(value))


def _set(
    receiver: str, name: str, value: ast.expr, is_field: bool
) -> Callable[[Renderer], Sequence[Statement]]:
    def make(renderer: Renderer) -> Sequence[Statement]:
        inner = renderer.render(value)
        stored = call("nnm.as_field", inner) if is_field else inner
        return [assign(f"{receiver}.{name}", stored)]

    return make
