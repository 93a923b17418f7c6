"""What local variables hold each time a recorded trace comes to a constructor call.

A size inside or after a loop may read the loop's variables, and variables of ``__init__`` that the
loop carries from round to round. So that recorded calls can be compared with it, the loops before
the call are run here over recorded fields, in the order in which ``__init__`` runs them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from nnx_migrate.abstract.expression import Expr
from nnx_migrate.evidence.evaluate import Surroundings, Unknown, evaluate
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.recorded_text import recorded_text
from nnx_migrate.source.walking import walk

_LIMIT = 2000  # rounds; more are not run

Names = dict[str, Any]
_Carries = Mapping[int, Sequence[tuple[str, Expr, Expr]]]
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_LOOPS = (ast.For, ast.AsyncFor, ast.While, *_COMPREHENSIONS)
_OWN_FLOW = (ast.While, ast.AsyncFor, ast.Try, ast.Match, ast.FunctionDef, ast.Lambda)
_JUMPS = (ast.Break, ast.Continue, ast.Return)


def rounds_of(analysis: ClassAnalysis, call: ast.Call, around: Surroundings) -> list[Names]:
    """What the names of ``__init__`` mean each time that ``call`` is executed.

    Raises:
      Unknown: the recording does not tell which way the code goes.
    """
    for owner in analysis.root.info.mro:
        for method in owner.methods.values():
            if any(node is call for node in walk(method)):
                interpreter = analysis.interpreter
                bound = frozenset(owner.module.table) | _bound(method)
                run = _Run(call, dict(interpreter.carried), interpreter.statics, around, bound)
                for statement in method.body:
                    run.visit(statement)
                return run.found
    raise Unknown("the call stands outside the class")


def _bound(method: ast.FunctionDef) -> set[str]:
    """Names that a method binds itself."""
    nodes = [*walk(method)]
    names = {
        one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    return names | {one.arg for one in nodes if isinstance(one, ast.arg)}


@dataclass
class _Run:
    """One run over the code of a method; ``names`` are those at the current place."""

    call: ast.Call
    carried: _Carries
    statics: Mapping[int, str | None]
    around: Surroundings
    bound: frozenset[str]  # names that stand for nothing built in
    names: Names = field(default_factory=dict)
    found: list[Names] = field(default_factory=list)
    loops: int = 0  # around the current place
    total: int = 0  # rounds so far

    def visit(self, node: ast.AST) -> None:
        """Run loops and conditions below a node."""
        if not self._matters(node):
            return
        if node is self.call:
            self.found.append(dict(self.names))
        match node:
            case ast.For(target=target, iter=iterable, body=body, orelse=orelse):
                self.visit(iterable)
                self._refuse_jumps(body)
                for _ in self._rounds(node, target, iterable):
                    self._each(body)
                self._each(orelse)
            case ast.ListComp(generators=[one]) | ast.GeneratorExp(generators=[one]):
                before = dict(self.names)
                for _ in self._rounds(node, one.target, one.iter):
                    if all(self._value(test) for test in one.ifs):
                        self._each([node.elt])
                hidden = {name.id for name in walk(one.target) if isinstance(name, ast.Name)}
                self.names = {
                    k: before.get(k, v) if k in hidden else v for k, v in self.names.items()
                }
            case ast.If(test=test, body=body, orelse=orelse):
                self._branch(test, body, orelse)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._branch(test, [body], [orelse])
            case _ if isinstance(node, (*_OWN_FLOW, *_COMPREHENSIONS)):
                raise Unknown("which way the code goes")
            case _:
                self._each(ast.iter_child_nodes(node))

    def _each(self, nodes: Any) -> None:
        for node in nodes:
            self.visit(node)

    def _matters(self, node: ast.AST) -> bool:
        """Whether the call, or a loop that carries something, stands below."""
        return any(one is self.call or self.carried.get(id(one)) for one in walk(node))

    def _refuse_jumps(self, body: list[ast.stmt]) -> None:
        if any(isinstance(node, _JUMPS) for one in body for node in walk(one)):
            raise Unknown("how many rounds a loop has")

    def _branch(self, test: ast.expr, body: Sequence[ast.AST], orelse: Sequence[ast.AST]) -> None:
        """The branch that the trace took: outside loops, one that a recorded call stands in."""
        try:
            taken = body if self._value(test) else orelse
        except Unknown:
            inside = [
                one
                for one in (body, orelse)
                if any(node is self.call for part in one for node in walk(part))
            ]
            if self.loops or not inside:
                raise
            taken = inside[0]
        self._each(taken)

    def _rounds(self, loop: ast.AST, target: ast.expr, iterable: ast.expr) -> Iterator[None]:
        """Run the rounds of a loop: bind its variables, and update what it carries."""
        carried = self.carried.get(id(loop), ())
        for name, first, _ in carried:
            self._carry(name, first)
        items = self._items(iterable)
        self.total += len(items)
        if self.total > _LIMIT:
            raise Unknown("too many rounds")
        self.loops += 1
        for item in items:
            self._bind(target, item)
            yield
            for name, _, last in carried:
                self._carry(name, last)
        self.loops -= 1

    def _carry(self, name: str, size: Expr) -> None:
        """Give a carried size its next value; without one nothing that reads it is known."""
        self.names.pop(name, None)
        with suppress(Unknown):
            self.names[name] = self._known(size.text)

    def _bind(self, target: ast.expr, item: Any) -> None:
        match target:
            case ast.Name(id=name):
                self.names[name] = item
            case ast.Tuple(elts=targets) if isinstance(item, tuple) and len(item) == len(targets):
                for one, part in zip(targets, item, strict=True):
                    self._bind(one, part)
            case _:
                raise Unknown("what a loop binds")

    def _items(self, iterable: ast.expr) -> list[Any]:
        match iterable:
            case ast.Call(func=ast.Name(id=name)) if name in self.bound:
                raise Unknown(f"what {name} is")
            case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]):
                return self._range([self._value(one) for one in args])
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner], keywords=[]):
                return list(enumerate(self._items(inner)))
            case ast.Call(func=ast.Name(id="zip"), args=args, keywords=[]):
                return list(zip(*(self._items(one) for one in args), strict=False))
            case ast.Call(func=ast.Name(id="reversed"), args=[inner], keywords=[]):
                return self._items(inner)[::-1]
        found = self._value(iterable)
        if not isinstance(found, tuple):
            raise Unknown(f"what {ast.unparse(iterable)} holds")
        return list(found)

    def _range(self, bounds: list[Any]) -> list[int]:
        if not 1 <= len(bounds) <= 3 or not all(type(one) is int for one in bounds):
            raise Unknown("the bounds of a range")
        if len(bounds) == 3 and bounds[2] == 0:
            raise Unknown("a range without steps")
        numbers = range(*bounds)
        if len(numbers) > _LIMIT:
            raise Unknown("too many rounds")
        return list(numbers)

    def _value(self, node: ast.expr) -> Any:
        """The value of an expression of the method, which size inference has to know."""
        text = self.statics.get(id(node))
        if text is None:
            raise Unknown(f"what {ast.unparse(node)} is")
        return self._known(text)

    def _known(self, text: str) -> Any:
        names = {**self.around.names, **self.names}
        spelled = recorded_text(Expr(ast.parse(text, mode="eval").body))
        return evaluate(spelled, replace(self.around, names=names))
