"""What a compact method builds from the shape of its input, where no expression over sizes says it.

The constructor then takes the whole shape as an argument. In ``__init__`` the call's parameter is a
local that has this shape and no values; statements that compute arrays from it are evaluated
abstractly, so that ``inputs.shape`` means what it means in Linen's initial call. A submodule that
has computed such an array is built by then: a copy of it runs, so that its state stays as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from nnx_migrate.edit.calls import call
from nnx_migrate.edit.expressions import Expression, attribute, function, integer, item
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.edit.statements import without_comments
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.rewrite.classes.reading.flags import asked_for_truth, flags_of
from nnx_migrate.rewrite.classes.reading.flow import Bind
from nnx_migrate.rewrite.classes.reading.taint import Replaced, value_of
from nnx_migrate.source.bindings import target_names
from nnx_migrate.source.names import defaults_of, root_name
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, is_none_literal, is_self, walk

RULE = "compact"
_ATTRIBUTES = frozenset({"shape", "ndim", "size"})
_FUNCTIONS: Mapping[str, str] = {
    f"{module}.{name}": name for module in ("jax.numpy", "numpy") for name in ("shape", "ndim")
}
_NUMBERS = frozenset({"bool", "complex", "float", "int", "range", "round", "str"})
_NONE = ast.Constant(None)
_LENGTH = "shape[0]"  # what ``len`` of an array reads
# What jax.Array has (jax 0.10.2), but for what concerns devices.
_OF_ARRAYS = frozenset(
    "T all any argmax argmin argsort astype at choose clip compress conj conjugate copy cumprod cumsum diagonal "  # noqa: SIM905
    "dot dtype flat flatten imag item itemsize mT max mean min nbytes ndim nonzero prod ptp ravel real repeat "
    "reshape round searchsorted shape size sort squeeze std sum swapaxes take tolist trace transpose var view "
    "weak_type".split()
)
_OF_LISTS = frozenset({"copy", "sort"})
_NO_ARRAYS = ("int", "bool", "str", "float", "dict", "list", "tuple", "Dict", "List", "Tuple")


@dataclass
class Shapes:
    """Shapes of the call's parameters that ``__init__`` may read.

    Args:
      parameters: names of the parameters that are taken for arrays.
      items: ids of the calls that build something.
      whole: ids of those that ``__init__`` may use: no call has to complete them.
      submodule_names: local names that hold such a submodule.
      incomplete: local names that hold another.
      flags: names that hold a flag of the call, which may be True or False.

    Attributes:
      nodes: ids of the expressions that read a shape -> the array expression.
      abstract: ids of the values that are evaluated abstractly -> the names they read so.
    """

    project: Project
    scope: Scope
    method: ast.FunctionDef
    parameters: frozenset[str]
    items: frozenset[int]
    whole: frozenset[int] = frozenset()
    submodule_names: frozenset[str] = frozenset()
    incomplete: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    nodes: dict[int, ast.expr] = field(default_factory=dict)
    read: dict[int, tuple[ast.AST, str]] = field(default_factory=dict)
    abstract: dict[int, tuple[ast.expr, frozenset[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the expressions that read a shape."""
        for node in walk(self.method) if self.parameters else ():
            found = self._read(node)
            if found is not None and free_names(found[0]):
                self.nodes[id(node)], name = found
                self.read[id(node)] = node, name

    def _read(self, node: ast.AST) -> tuple[ast.expr, str] | None:
        match node:
            case ast.Attribute(value=value, attr=attr, ctx=ast.Load()) if attr in _ATTRIBUTES:
                return value, attr
            case ast.Call(func=ast.Name(id="len"), args=[value], keywords=[]):
                return None if self._is_shape(value) else (value, _LENGTH)
            case ast.Call(func=function, args=[value], keywords=[]):
                symbol = self.project.resolve(function, self.scope) or ""
                return (value, _FUNCTIONS[symbol]) if symbol in _FUNCTIONS else None
        return None

    def _is_shape(self, node: ast.expr) -> bool:
        """Whether an expression is a shape or a part of one: its length is not an array's."""
        match node:
            case ast.Subscript(value=value):
                return self._is_shape(value)
            case ast.BinOp(left=left, right=right):
                return self._is_shape(left) or self._is_shape(right)
            case ast.Tuple() | ast.List():
                return True
        return self._read(node) is not None

    def unread(self, init_texts: Replaced) -> dict[int, frozenset[str]]:
        """The expressions as they are for what depends on values: they read nothing."""
        return {key: init_texts.get(key, frozenset()) for key in self.nodes}

    def values(
        self, node: ast.AST, tainted_names: frozenset[str], init_texts: Replaced
    ) -> frozenset[str]:
        """Names that an expression reads more of than a shape, or than whether they are None."""
        tests = {
            id(one): frozenset[str]() for one in each(node, ast.Compare) if _asks_for_none(one)
        }
        return free_names(node, {**tests, **self.unread(init_texts), **init_texts}) & tainted_names

    def init_expressions(self, init_texts: Replaced) -> dict[int, frozenset[str]]:
        """The expressions as ``__init__`` evaluates them, with the names they read."""
        return {
            key: init_texts[key] if key in init_texts else free_names(value, init_texts)
            for key, value in self.nodes.items()
        }

    def note_evaluation(self, step: Bind, tainted_names: frozenset[str]) -> None:
        """Note that ``step`` computes an array that ``__init__`` needs the shape of.

        Raises:
          Refused: it cannot be evaluated without values.
        """
        value = value_of(step.node)
        plain = isinstance(step.node, ast.Assign) and all(map(_is_plain, step.node.targets))
        if not plain or not isinstance(value, ast.expr) or not self._is_pure(value, tainted_names):
            raise ClassRefused(
                step.node,
                "the shape of what it computes decides what is built later, and it cannot be"
                " computed from shapes alone",
                "read the size from a field, or build from fields only",
                RULE,
            )
        self.abstract[id(value)] = value, self._free_names(value) & tainted_names

    def _free_names(self, value: ast.AST) -> frozenset[str]:
        """Names that an expression reads beside the constructors in it, which ``__init__`` has called."""
        return free_names(value, dict.fromkeys(self.items, frozenset()))

    def check(self, node: ast.AST, tainted_names: frozenset[str], init_texts: Replaced) -> None:
        """Note what the shapes that ``node`` reads are shapes of.

        Raises:
          Refused: one is the shape of what cannot be computed without values.
        """
        for one in walk(node):
            value = self.nodes.get(id(one))
            if value is None or id(one) in init_texts:
                continue
            names = self._free_names(value) & tainted_names
            if not names:
                continue
            if not self._is_pure(value, tainted_names):
                raise ClassRefused(
                    one,
                    "this shape decides what is built, and it cannot be computed from shapes alone",
                    "read the size from a field, or build from fields only",
                    RULE,
                )
            self.abstract[id(value)] = value, names

    def _is_pure(self, node: ast.expr, tainted_names: frozenset[str]) -> bool:
        """Whether evaluating ``node`` needs no values and no state of the module."""
        if any(self.values(one, tainted_names - self.flags, {}) for one in _concrete(node)):
            return False
        inside = {id(part) for call in walk(node) if id(call) in self.items for part in walk(call)}
        for one in walk(node):
            if id(one) in self.items and id(one) not in self.whole:
                return False
            if id(one) in inside:
                continue  # __init__ has built it
            match one:
                case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")))):
                    return False
                case ast.Call(func=function, args=args) if root_name(function) == "self" or any(
                    map(is_self, args)
                ):
                    return False
                case ast.Subscript(slice=index) if free_names(index) & tainted_names:
                    return False
                case ast.Call(func=ast.Name(id=name)) if name in tainted_names:
                    return False
                case ast.Call(func=function) if root_name(function) in self.incomplete:
                    return False
                case ast.Call(func=ast.Name(id="max" | "min" | "sorted"), keywords=[_, *_]) if (
                    free_names(one) & tainted_names
                ):  # key= orders arrays by their values
                    return False
        return True

    def _copies(self, value: ast.expr) -> list[ast.expr]:
        """What ``value`` calls that is a submodule, or a part of a local that holds one."""
        functions = [one.func for one in each(value, ast.Call)]
        owners = [one.value if isinstance(one, ast.Attribute) else one for one in functions]
        return [
            one for one in owners if id(one) in self.whole or root_name(one) in self.submodule_names
        ]

    def edits(self) -> dict[int, Replacement]:
        """Edits for ``__init__``."""
        edits: dict[int, Replacement] = {}
        for key, (value, names) in self.abstract.items():
            if not isinstance(value, ast.Name):
                edits[key] = _evaluation(value, names, self._copies(value), self.flags)
        for key, (node, name) in self.read.items():
            if isinstance(node, ast.Call) and id(self.nodes[key]) in self.abstract:
                edits[key] = _attribute(self.nodes[key], name)
        return edits


def _asks_for_none(node: ast.Compare) -> bool:
    return isinstance(node.ops[0], ast.Is | ast.IsNot) and all(
        map(is_none_literal, node.comparators)
    )


def _concrete(node: ast.expr) -> Iterator[ast.AST]:
    """What Python itself decides by, or makes a number of, which an abstract array is not."""
    for one in walk(node):
        match one:
            case ast.IfExp(test=test):
                yield test
            case ast.BoolOp(values=[*values, _]):
                yield from values
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield operand
            case ast.comprehension(ifs=tests):
                yield from tests
            case ast.Call(func=ast.Name(id=name), args=args) if name in _NUMBERS:
                yield from args
            case ast.Call(func=ast.Attribute(value=value, attr="item" | "tolist")):
                yield value


def array_parameters(method: ast.FunctionDef, shapes: Shapes) -> frozenset[str]:
    """Parameters whose shape the method reads somewhere, and that have no default but None."""
    defaults = defaults_of(method.args)
    plain = (*method.args.posonlyargs, *method.args.args)[1:]
    candidates = {
        one.arg
        for one in (*plain, *method.args.kwonlyargs)
        if _may_be_array(one) and is_none_literal(defaults.get(one.arg, _NONE))
    }
    flags = asked_for_truth(method) | flags_of(shapes.project, shapes.scope, method)
    arrays = _arrays(method)
    read = candidates - flags - _collections(method, arrays)
    measured = _origins(method, _shape_reads(shapes))
    return frozenset(read & (measured | (_origins(method, shapes.nodes.values()) & arrays)))


def _shape_reads(shapes: Shapes) -> Iterator[ast.expr]:
    """What has a shape, as the method reads it other than by ``len``."""
    for key, value in shapes.nodes.items():
        if shapes.read[key][1] != _LENGTH:
            yield value


def _collections(method: ast.FunctionDef, arrays: Collection[str]) -> set[str]:
    """Names of what has parts that no array has, or is taken apart and shows in no other way to be an array."""
    named: set[str] = set()
    apart: set[str] = set()
    surely = {*arrays}
    aliases: list[tuple[str, str]] = []
    for node in walk(method):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr not in _OF_ARRAYS:
                named.add(name)
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr not in _OF_LISTS:
                surely.add(name)
            case ast.Assign(targets=[ast.Tuple() | ast.List()], value=ast.Name(id=name)):
                apart.add(name)
            case ast.For(iter=ast.Name(id=name)) | ast.comprehension(iter=ast.Name(id=name)):
                apart.add(name)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str())):
                named.add(name)
            case ast.Subscript(value=ast.Name(id=name), slice=index) if not _is_slice(index):
                apart.add(name)
            case ast.Call(func=ast.Name(id="enumerate" | "reversed" | "zip"), args=args):
                apart |= {one.id for one in args if isinstance(one, ast.Name)}
            case ast.Assign(targets=[ast.Name(id=alias)], value=ast.Name(id=name)):
                aliases.append((alias, name))
    found = named | (apart - surely)
    for _ in aliases:
        found |= {name for alias, name in aliases if alias in found}
    return found


def _is_slice(index: ast.expr) -> bool:
    """Whether an index takes a part that is no item: ``1:``, ``..., 0``, ``None``."""
    is_axis = isinstance(index, ast.Constant) and index.value in (None, ...)
    return is_axis or isinstance(index, ast.Slice | ast.Tuple)


def _arrays(method: ast.FunctionDef) -> set[str]:
    """Names of what has no length but an array's: it is computed with, or given to a layer made there."""
    found: set[str] = set()
    for node in walk(method):
        match node:
            case ast.BinOp(left=one, right=other) if not isinstance(node.op, ast.Add):
                found |= {part.id for part in (one, other) if isinstance(part, ast.Name)}
            case ast.Attribute(
                value=ast.Name(id=name), attr="shape" | "ndim" | "dtype" | "T" | "at"
            ):
                found.add(name)
            case ast.Call(func=ast.Call(), args=[ast.Name(id=name), *_]):
                found.add(name)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple()):
                found.add(name)
    return found


def _origins(method: ast.FunctionDef, arrays: Iterable[ast.expr]) -> set[str]:
    """Names that arrays start from, through the assignments of the method: ``x`` in ``x[:, 0]``."""
    bound: dict[str, list[ast.expr]] = {}
    for node in walk(method):
        match node:
            case ast.Assign(targets=[target], value=value) if _is_plain(target):
                for name in target_names(target):
                    bound.setdefault(name, []).append(value)
    found: set[str] = set()
    todo = list(arrays)
    while todo:
        for name in set(_roots(todo.pop())) - found:
            found.add(name)
            todo += bound.get(name, [])
    return found


def _roots(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Name(id=name):
            yield name
        case ast.Attribute(value=value) | ast.Subscript(value=value):
            yield from _roots(value)
        case ast.Call(func=function, args=args, keywords=keywords):
            for one in (function, *args, *(keyword.value for keyword in keywords)):
                yield from _roots(one)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for one in parts:
                yield from _roots(one)
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            yield from _roots(one)
            yield from _roots(other)


def _may_be_array(parameter: ast.arg) -> bool:
    text = ast.unparse(parameter.annotation) if parameter.annotation is not None else ""
    return text.partition("[")[0].rpartition(".")[2] not in _NO_ARRAYS


def _is_plain(target: ast.expr) -> bool:
    """Whether a target is a name, or several that a sequence is unpacked into."""
    if isinstance(target, ast.Tuple | ast.List):
        return all(isinstance(one, ast.Name) for one in target.elts)
    return isinstance(target, ast.Name)


def _evaluation(
    value: ast.expr, names: frozenset[str], evaluations: Iterable[ast.expr], flags: frozenset[str]
) -> Callable[[Renderer], Expression]:
    arguments = ["nnm.EITHER" if one in flags else one for one in sorted(names)]

    def make(renderer: Renderer) -> Expression:
        copies = {id(one): call("nnm.copied", renderer.render(one)) for one in evaluations}
        inner = renderer.with_edits(copies).without(value).inner(value)
        return call("nnm.abstractly", function(sorted(names), without_comments(inner)), *arguments)

    return make


def _attribute(value: ast.expr, name: str) -> Callable[[Renderer], Expression]:
    first, bracket, _ = name.partition("[0]")

    def make(renderer: Renderer) -> Expression:
        found = attribute(renderer.render(value), first)
        return item(found, integer(0)) if bracket else found

    return make
