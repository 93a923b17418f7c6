"""Between the two spellings of a size: recorded (``x.shape[-1]``) and inferred (``size__x__m1``)."""

from __future__ import annotations

import ast
import re

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import each, walk

_PATH = re.compile(r"[^\W\d]\w*(?:\.\w+|\[\d+\])*")
_READABLE = frozenset(("self", "int"))
_INDEX = "index"


class _Unspellable(Exception):
    """``__init__`` has no name for what the expression reads."""


def expression_of(text: str, info: ClassInfo, call: ast.Call) -> Expr | None:
    """A recorded expression as size inference writes it; None when ``__init__`` cannot read it."""
    try:
        return Expr(_ToInputs(_loop_variable(info, call)).visit(ast.parse(text, mode="eval").body))
    except _Unspellable:
        return None


class _ToInputs(ast.NodeTransformer):
    def __init__(self, loop_variable: str | None) -> None:
        self.loop_variable = loop_variable

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(value=ast.Attribute(value=array, attr="shape"), slice=index):
                path, axis = ast.unparse(array), ast.literal_eval(index)
                if not _PATH.fullmatch(path) or path.startswith("self."):
                    raise _Unspellable(path)
                return ex.input_size(path, axis).node
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == _INDEX and self.loop_variable is not None:
            return ast.Name(self.loop_variable, ast.Load())
        if node.id not in _READABLE:
            raise _Unspellable(node.id)
        return node


def recorded_text(size: Expr) -> str:
    """An inferred expression as recorded calls are spelled, for evaluation and for people."""

    class ToShapes(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            if not ex.is_input(node.id):
                return node
            path, axis = ex.input_of(node.id)
            if ex.fact_of(node.id) is not None:
                text = f"{path} is not None" if ex.fact_of(node.id) == ex.GIVEN else path
                return ast.parse(text, mode="eval").body
            end = "" if axis is None else f"[{axis}]"
            return ast.parse(f"{path}.shape{end}", mode="eval").body

    try:
        return ast.unparse(ToShapes().visit(ast.parse(size.text, mode="eval").body))
    except SyntaxError:  # a path that only inference knows, such as a local array's
        return size.text


def _loop_variable(info: ClassInfo, call: ast.Call) -> str | None:
    """The variable that counts what a site built before: of the one plain loop it stands in."""
    for owner in info.mro:
        path = _path_to(owner.node, call)
        if path:
            loops = [node for node in path if isinstance(node, _LOOPS)]
            branches = [node for node in path if isinstance(node, _BRANCHES)]
            if len(loops) == 1 and not branches:
                name = _counter(loops[0])
                return None if _times_bound(loops[0], name) > 1 else name
    return None


def _times_bound(loop: ast.AST, name: str | None) -> int:
    """How often a loop binds a name: once as its variable, or again in its body."""
    names = (node for node in each(loop, ast.Name) if node.id == name)
    return sum(not isinstance(node.ctx, ast.Load) for node in names)


_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_BRANCHES = (ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.Match, ast.Lambda)


def _path_to(root: ast.AST, target: ast.AST) -> list[ast.AST]:
    """Nodes from a method down to a node inside it; () when it is not there."""
    if root is target:
        return [root]
    for child in ast.iter_child_nodes(root):
        found = _path_to(child, target)
        if found:
            inside = isinstance(root, ast.FunctionDef | ast.ClassDef)
            return found if inside else [root, *found]
    return []


def _counter(loop: ast.AST) -> str | None:
    """``i`` of ``for i in range(n)`` and ``for i, x in enumerate(xs)``, without ``continue``."""
    match loop:
        case ast.For(target=target, iter=iterable, body=body):
            skips = (ast.Continue, ast.Break, ast.Return)
            if any(isinstance(node, skips) for one in body for node in walk(one)):
                return None
        case ast.ListComp(generators=[ast.comprehension(target=target, iter=iterable, ifs=[])]):
            pass
        case _:
            return None
    match target, iterable:
        case ast.Name(id=name), ast.Call(func=ast.Name(id="range"), args=[_], keywords=[]):
            return name
        case ast.Tuple(elts=[ast.Name(id=name), _]), ast.Call(
            func=ast.Name(id="enumerate"), args=[_], keywords=[]
        ):
            return name
    return None
