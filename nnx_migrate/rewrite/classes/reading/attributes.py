"""What the attributes that ``setup`` assigns hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import Item, ItemKind, receiver_of
from nnx_migrate.rewrite.classes.reading.evaluation import COMPREHENSIONS, contains, held_parts
from nnx_migrate.source.bindings import pairs_of, target_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import Comprehension, each, is_none_literal, walk

RULE = "setup"
_REARRANGING = frozenset({"enumerate", "filter", "iter", "map", "reversed", "sorted", "zip"})
_TWO_NAMES = "submodules that an attribute holds get second names here"


class Kind(StrEnum):
    """What an attribute holds."""

    SUBMODULE = "submodule"
    STRUCTURE = "structure"  # a list, tuple or dict of submodules
    PARAM = "param"
    VARIABLE = "variable"
    ALIAS = "alias"  # another name of a submodule the class holds already
    COMPUTED = "computed"  # follows a parameter or variable: a property computes it
    PLAIN = "plain"


@dataclass(frozen=True)
class Attribute:
    """One assignment ``self.<name> = ...`` of ``setup``."""

    name: str
    kind: Kind
    statement: ast.stmt
    target: ast.Attribute
    value: ast.expr
    storage_name: str | None = None  # attribute that really holds it, where Linen's path differs


MODULES = (Kind.SUBMODULE, Kind.STRUCTURE, Kind.ALIAS)


def setup_attributes(
    cls: ClassInfo, method: ast.FunctionDef, items: Mapping[int, Item]
) -> list[Attribute]:
    """Assignments to attributes in ``method``, in source order."""
    reading = _Reading(items, receiver_of(method))
    return [found for statement in statements(method.body) for found in reading.read(statement)]


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements and those in blocks inside, in source order; not those of local functions."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for block in ("body", "orelse", "finalbody"):
            yield from statements(getattr(statement, block, []))
        for part in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
            yield from statements(part.body)


def set_by_name(statement: ast.stmt, receiver: str) -> ast.expr | None:
    """What ``setattr(self, name, value)`` stores."""
    match statement:
        case ast.Expr(
            value=ast.Call(func=ast.Name("setattr"), args=[ast.Name(id=name), _, value])
        ) if name == receiver:
            return value
    return None


def _assignments(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    match statement:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from pairs_of(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield target, value
        case ast.AugAssign(target=ast.Attribute() as target, op=ast.Add(), value=value):
            yield target, value


@dataclass
class _Reading:
    """What attributes and local names of one ``setup`` hold so far.

    Attributes:
      kinds: attribute -> what it holds.
      local: local name -> what it holds that no attribute holds yet.
      second: local names of what attributes hold: ``first`` after ``first = self.layers[0]``.
      makers: local functions that build: ``make`` after ``make = lambda: Block(self.dim)``.
    """

    items: Mapping[int, Item]
    receiver: str
    kinds: dict[str, Kind] = field(default_factory=dict)
    local: dict[str, Kind] = field(default_factory=dict)
    second: set[str] = field(default_factory=set)
    makers: set[str] = field(default_factory=set)

    def read(self, statement: ast.stmt) -> Iterator[Attribute]:
        """The attributes that a statement assigns."""
        value = set_by_name(statement, self.receiver)
        if value is not None and self._kind(value, allows_computed=True)[0] is Kind.STRUCTURE:
            raise ClassRefused(
                value,
                "`setattr` names a list or dict of submodules here",
                "assign it under its own name, or give each submodule a name",
                RULE,
            )
        self._note_maker(statement)
        for target, value in self._alternatives(statement):
            if isinstance(value, ast.Lambda) and isinstance(target, ast.Name):
                continue
            kind, stored = self._kind(value)
            if kind in MODULES and self._is_second(statement, target):
                raise ClassRefused(value, _TWO_NAMES, "assign each on a line of its own", RULE)
            if kind in MODULES and isinstance(target, ast.Tuple | ast.List):
                self._unpack(target)
            match target:
                case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self.receiver:
                    self.kinds[attr] = kind
                    stored = None if stored == attr else stored
                    yield Attribute(attr, kind, statement, target, value, stored)
                case ast.Name(id=name):
                    self.local[name] = _stronger(self.local.get(name), kind)
            self._note_second_names(target, value)
        if isinstance(statement, ast.For):
            self._note_second_names(statement.target, statement.iter)
        self._note_mutation(statement)

    def _unpack(self, target: ast.Tuple | ast.List) -> None:
        """``a, b = [nn.Dense(3), nn.Dense(4)]``: each is one of them.

        Raises:
          Refused: ``first, *self.rest = layers``.
        """
        for one in target.elts:
            if isinstance(one, ast.Starred):
                raise ClassRefused(
                    one,
                    "some of a list of submodules are unpacked into one",
                    "assign each on a line of its own",
                    RULE,
                )
            if isinstance(one, ast.Name):
                self.local[one.id] = _stronger(self.local.get(one.id), Kind.SUBMODULE)

    def _note_maker(self, statement: ast.stmt) -> None:
        match statement:
            case ast.FunctionDef(name=name):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda()):
                pass
            case _:
                return
        if contains(statement, self.items):
            self.makers.add(name)

    def _alternatives(self, statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
        """What a statement assigns; both sides of ``self.param("b", ...) if self.use_bias else None``."""
        for target, value in _assignments(statement):
            match value:
                case ast.IfExp(body=body, orelse=orelse) if self._holds_one(body, orelse):
                    yield from ((target, body), (target, orelse))
                case _:
                    yield target, value

    def _holds_one(self, *values: ast.expr) -> bool:
        """Whether the values are parameters or variables of one name, or such a one and None."""
        names = set()
        for value in values:
            item = self.items.get(id(value))
            if item is not None and item.is_own_variable and item.name is not None:
                names.add(ast.dump(item.name))
            elif not is_none_literal(value):
                return False
        return len(names) == 1

    def _is_second(self, statement: ast.stmt, target: ast.expr) -> bool:
        """Whether the statement gives the value to another attribute before: ``self.a = self.b = Block()``."""
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        own = [one for one in targets if self._is_own(one)]
        return target in own[1:]

    def _note_second_names(self, target: ast.expr, value: ast.expr) -> None:
        if not self._is_held(value):
            return
        self.second |= set(target_names(target))
        if isinstance(target, ast.Tuple | ast.List) and any(map(self._is_own, walk(target))):
            raise ClassRefused(value, _TWO_NAMES, "assign each on a line of its own", RULE)

    def _note_mutation(self, statement: ast.stmt) -> None:
        """``layers.append(nn.Dense(3))`` makes ``layers`` a structure; so does ``d[k] = ...``."""
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=args)):
                if any(map(self._holds, args)):
                    self.local[name] = Kind.STRUCTURE
            case (
                ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))], value=value)
                | ast.AugAssign(target=ast.Name(id=name), value=value)
            ):
                if self._holds(value):
                    self.local[name] = Kind.STRUCTURE

    def _holds(self, node: ast.expr) -> bool:
        """Whether a value is, or has in it, what is no plain value: ``(a, b)`` of two layers."""
        return self._builds(node) or self._is_held(node) or self._is_module(node)

    def _builds(self, node: ast.expr) -> bool:
        """Whether something is built in it, or by a local function that it calls."""
        if contains(node, self.items):
            return True
        return any(one.id in self.makers for one in each(node, ast.Name))

    def _is_own(self, node: ast.AST) -> bool:
        """Whether it is ``self.<attribute>``."""
        match node:
            case ast.Attribute(value=ast.Name(id=name)):
                return name == self.receiver
        return False

    def _is_held(self, node: ast.AST) -> bool:
        """Whether it is a submodule that an attribute holds, or a part or a container of such."""
        match node:
            case ast.Name(id=name):
                return name in self.second
            case ast.Attribute(attr=attr) if self._is_own(node):
                return self.kinds.get(attr) in MODULES
        if isinstance(node, COMPREHENSIONS):
            return self._collects(node)
        return any(map(self._is_held, held_parts(node)))

    def _collects(self, node: Comprehension) -> bool:
        """Whether the items are held: ``[b for b in self.blocks]``, not ``[b.features for b in self.blocks]``."""
        over = [one for one in node.generators if self._is_held(one.iter)]
        names = {name for one in over for name in target_names(one.target)}
        inside = replace(self, second=self.second | names)
        return any(map(inside._is_held, held_parts(node)))

    def _gathers(self, value: ast.expr) -> bool:
        """Whether it holds submodules of locals: ``list(zip(a, b))``, ``layers[::-1]``, not ``layers[0]``."""
        if isinstance(value, ast.Subscript) and not isinstance(value.slice, ast.Slice):
            return False
        names = {name for name, kind in self.local.items() if kind in MODULES}
        return replace(self, second=self.second | names)._is_held(value)

    def _kind(self, value: ast.expr, *, allows_computed: bool = False) -> tuple[Kind, str | None]:
        """Kind of a value, and its literal name; ``allows_computed`` allows names that are not literal."""
        item = self.items.get(id(value))
        if item is not None:
            return _item_kind(item, allows_computed=allows_computed)
        match value:
            case ast.Name(id=name) if name not in self.second:
                return self.local.get(name, Kind.PLAIN), None
            case ast.Attribute(attr=attr) if self._is_own(value):
                known = self.kinds.get(attr)
                return (Kind.ALIAS if known and known is not Kind.PLAIN else Kind.PLAIN), None
            case ast.IfExp(body=body, orelse=orelse):
                first, second = self._kind(body)[0], self._kind(orelse)[0]
                if Kind.SUBMODULE in (first, second) and self._is_held(value):
                    raise ClassRefused(value, _TWO_NAMES, "assign each on a line of its own", RULE)
                return (first if first is not Kind.PLAIN else second), None
            case ast.List() | ast.Tuple() | ast.Dict():
                inside = any(map(self._is_module, ast.iter_child_nodes(value)))
                return (Kind.STRUCTURE if inside else Kind.PLAIN), None
            case ast.BinOp(left=left, right=right):
                kinds = {self._kind(one, allows_computed=True)[0] for one in (left, right)}
                is_list = Kind.STRUCTURE in kinds or self._is_held(value)
                return (Kind.STRUCTURE if is_list else Kind.PLAIN), None
            case ast.Call(func=ast.Name(id="dict"), keywords=[_, *_] as entries):
                inside = any(map(self._is_module, (*value.args, *(one.value for one in entries))))
                return (Kind.STRUCTURE if inside else Kind.PLAIN), None
            case ast.Call(func=ast.Name(id="list" | "tuple" | "dict"), args=[inner]):
                return self._kind(inner)
            case ast.Call(func=ast.Name(id=name)) if name in self.makers:
                return Kind.SUBMODULE, None
        if isinstance(value, COMPREHENSIONS) and self._builds(value):
            return Kind.STRUCTURE, None
        if self._is_held(value) or self._gathers(value):
            return Kind.STRUCTURE, None
        if not contains(value, self.items):
            return Kind.PLAIN, None
        if self._is_rearranged(value):
            raise ClassRefused(
                value,
                "a list of submodules is built and changed in one expression",
                "bind the list to a local name first",
                RULE,
            )
        return Kind.SUBMODULE, None

    def _is_rearranged(self, value: ast.expr) -> bool:
        """Whether it holds several that are built in it: ``[nn.Dense(3), nn.Dense(4)][::-1]``, ``sorted([...])``."""
        match value:
            case ast.Subscript(slice=ast.Slice()):
                return True
            case ast.Call(func=ast.Name(id=name)):
                return name in _REARRANGING
            case ast.BoolOp(values=values):
                return any(self._kind(one)[0] is Kind.STRUCTURE for one in values)
        return False

    def _is_module(self, node: ast.AST) -> bool:
        return isinstance(node, ast.expr) and (
            self._kind(node, allows_computed=True)[0] is not Kind.PLAIN
        )


def _stronger(first: Kind | None, second: Kind) -> Kind:
    if first is Kind.STRUCTURE:
        return first
    return second


def _item_kind(item: Item, *, allows_computed: bool) -> tuple[Kind, str | None]:
    literal = None
    if isinstance(item.name, ast.Constant) and isinstance(item.name.value, str):
        literal = item.name.value
    match item.kind:
        case ItemKind.SITE:
            if item.name is not None and literal is None and not allows_computed:
                raise ClassRefused(
                    item.call,
                    "the name of an attribute's submodule is computed",
                    "write the name as a string, or assign it under its own name",
                    RULE,
                )
            return Kind.SUBMODULE, literal
        case ItemKind.PARAM | ItemKind.VARIABLE:
            if literal is None:
                raise ClassRefused(item.call, "its name is computed", "write it as a string", RULE)
            return (Kind.PARAM if item.kind is ItemKind.PARAM else Kind.VARIABLE), literal
        case _:
            return Kind.PLAIN, None
