"""Constructor keywords that depend on the call (``deterministic=not train``) move to the call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from nnx_migrate.constructs import layer_of
from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.calls import with_arguments
from nnx_migrate.edit.expressions import Expression
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.rewrite.classes.compact.late import bound_again
from nnx_migrate.rewrite.classes.compact.views import are_layers, are_set_by, may_set
from nnx_migrate.rewrite.classes.data import ConversionContext, Refused
from nnx_migrate.rewrite.classes.fields.late import call_fields, late_arguments
from nnx_migrate.rewrite.classes.items import Item
from nnx_migrate.rewrite.classes.reading.evaluation import free_names
from nnx_migrate.rewrite.classes.reading.questions import ANSWER
from nnx_migrate.rewrite.classes.reading.taint import Replaced, Taint, tainted_name
from nnx_migrate.sizes.result import SiteKind
from nnx_migrate.source.bindings import bindings_below, changed_names
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.modules import Parents
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import each, walk

RULE = "call-time-argument"


@dataclass
class Moves:
    """What moves.

    Attributes:
      values: ids of the keyword values that leave a constructor.
      partials: calls of ``partial`` that lose keywords, by id.
      calls: keywords that a call gains, by id of the call.
      views: keywords under which a built submodule is called, by id of its constructor call.
      late: fields that a built submodule gets at the call, by id of its constructor call.
    """

    values: set[int] = field(default_factory=set)
    partials: dict[int, ast.Call] = field(default_factory=dict)
    calls: dict[int, list[ast.keyword]] = field(default_factory=dict)
    views: dict[int, list[ast.keyword]] = field(default_factory=dict)
    late: dict[int, Mapping[str, ast.expr]] = field(default_factory=dict)

    def view(self, constructor: ast.Call, keywords: Iterable[ast.keyword]) -> None:
        """Call what a constructor call builds under keywords; several partials may give it one and the same.

        Raises:
          Refused: two of them give it different values.
        """
        views = self.views.setdefault(id(constructor), [])
        texts = {one.arg: ast.unparse(one.value) for one in views}
        for one in keywords:
            if texts.setdefault(one.arg, ast.unparse(one.value)) != ast.unparse(one.value):
                raise _refusal(constructor, f"it is handed partials with two values for {one.arg}")
            if all(one.arg != other.arg for other in views):
                views.append(one)

    @property
    def late_values(self) -> set[int]:
        """Ids of the values of late fields, in whose place the constructor gets None."""
        return {id(value) for fields in self.late.values() for value in fields.values()}


def moves_of(
    project: Project,
    scope: Scope,
    method: ast.FunctionDef,
    items: Mapping[int, Item],
    taint: Taint,
    replaced: Replaced,
    context: ConversionContext,
    cls: ClassInfo,
) -> Moves:
    """Find the keywords that move, and the calls that take them."""
    moves = Moves()
    uses = _Uses(method)
    for item in items.values():
        tainted = taint.at.get(id(item.call), frozenset())
        symbol = item.site.symbol if item.site is not None else None
        movable = _movable(project, scope, symbol, item.call.func, context)
        given = _given(item.call, symbol)
        moving = _moving(given, movable, tainted, replaced)
        if moving and (layer_of(symbol) or not uses.fault(item.call, moving, item.call)):
            uses.move(item.call, moving, item.call, moves)
        late = late_arguments(project, item, context, tainted, replaced)
        late = {name: one for name, one in late.items() if id(one) not in moves.values}
        if late:
            moves.late[id(item.call)] = late
            moves.values |= {id(value) for value in late.values()}
    everything = _of_the_call(method, replaced)
    for node in walk(method):
        if isinstance(node, ast.Call) and _is_partial(project, scope, node):
            symbol = project.resolve(node.args[0], scope)
            movable = _movable(project, scope, symbol, node.args[0], context)
            moving = _moving(node.keywords, movable, everything, replaced)
            if moving:
                is_layer = layer_of(symbol) is not None
                _move_partial(
                    project, scope, cls, node, moving, uses, items, moves, is_layer=is_layer
                )
    _check_copies(items, moves, context)
    return moves


def _check_copies(items: Mapping[int, Item], moves: Moves, context: ConversionContext) -> None:
    """Refuse copies of modules with lazy ones: a lazy module is known by what the explicit one holds.

    Raises:
      Refused: one is called as a view, or with fields of the call.
    """
    for item in items.values():
        is_copied = id(item.call) in moves.views or id(item.call) in moves.late
        if is_copied and item.site is not None and context.is_lazy_inside(item.site):
            raise _refusal(item.call, "it holds lazy submodules, and the call decides its fields")


def _moving(
    given: Iterable[ast.keyword], movable: Collection[str], tainted: frozenset[str], known: Replaced
) -> list[ast.keyword]:
    """Those of the keywords that depend on the call and that a call takes, too."""
    return [one for one in given if one.arg in movable and tainted_name(one.value, tainted, known)]


def _given(call: ast.Call, symbol: str | None) -> list[ast.keyword]:
    """The keywords of a constructor call, and a movable last positional argument as one."""
    layer, count = layer_of(symbol), len(call.args)
    name = layer.fields[count - 1] if layer and 0 < count <= len(layer.fields) else ""
    if layer and name in layer.at_call and not isinstance(call.args[-1], ast.Starred):
        return [*call.keywords, ast.keyword(name, call.args[-1])]
    return call.keywords


def _movable(
    project: Project, scope: Scope, symbol: str | None, name: ast.expr, context: ConversionContext
) -> Collection[str]:
    """Fields of a layer, or of a class that is called by its own name, that its call takes too."""
    layer = layer_of(symbol)
    if layer is not None:
        return layer.at_call
    cls = project.linen.get(symbol or "")
    if cls is None or project.resolve(name, scope) != symbol:
        return ()
    if cls.name not in context.converted and cls.name not in context.lazy:
        return ()
    told = {one.argument for one in context.new_arguments.get(cls.name, ()) if one.fact}
    return call_fields(project, cls) - told


def _of_the_call(method: ast.FunctionDef, replaced: Replaced) -> frozenset[str]:
    """The parameters of a method, answers, and the local names that may hang on them: ``off = not train``."""
    names, pairs = frozenset((*_parameters(method), ANSWER)), [*bindings_below(method)]
    while True:
        read = (target for target, value in pairs if _reads(value, names, replaced))
        wider = names.union(name for target in read for name in changed_names(target))
        if wider == names:
            return names
        names = wider


def _reads(node: ast.AST, names: Collection[str], replaced: Replaced) -> bool:
    return any(
        (isinstance(one, ast.Name) and one.id in names) or ANSWER in replaced.get(id(one), ())
        for one in walk(node)
    )


def _parameters(method: ast.FunctionDef) -> list[str]:
    arguments = method.args
    plain = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return [one.arg for one in plain][1:]


def _is_partial(project: Project, scope: Scope, node: ast.Call) -> bool:
    return project.resolve(node.func, scope) == "functools.partial" and bool(node.args)


def _move_partial(
    project: Project,
    scope: Scope,
    cls: ClassInfo,
    node: ast.Call,
    moving: list[ast.keyword],
    uses: _Uses,
    items: Mapping[int, Item],
    moves: Moves,
    *,
    is_layer: bool,
) -> None:
    """Move keywords of a partial to the calls of what is built with it, or of what is handed it.

    Where a name holds one of several (``norm = partial(nn.BatchNorm, use_running_average=not train)``, or
    ``nn.LayerNorm``), what is built is viewed: the flag is set where the layer has one.
    """
    name = uses.bound_to(node)
    is_one_of_several = name is None
    if name is None and is_layer:
        name = uses.bound_among(node)
        flags = {str(one.arg): ast.unparse(one.value) for one in moving}
        if name is None or not are_layers(project, scope, uses.values_of(name), flags):
            return
        if not uses.are_parameters(moving):
            return  # a local may be bound in the partial's own branch alone
    if name is None:
        return
    built, handed, seen = [], [], set()
    for item in items.values():
        site, function = item.site, item.call.func
        if site is None:
            continue
        if item.is_in_scope and _names(item.call, name):
            raise _refusal(
                item.call,
                "a function outside the class builds from an argument that depends on the call",
            )
        if site.kind is SiteKind.FACTORY and isinstance(function, ast.Name) and function.id == name:
            built.append(item)
            seen.add(id(function))
        elif inside := {id(one) for part in _arguments(item.call) for one in _names(part, name)}:
            handed.append(item)
            seen |= inside
    if any(id(one) not in seen for one in uses.loads.get(name, [])):
        raise _refusal(
            node, "a partial with an argument that depends on the call is not just called"
        )
    if handed and not is_layer:
        return  # a view sets flags of layers alone
    for one in handed:
        symbol = one.site.symbol if one.site is not None else None
        words = frozenset(str(flag.arg) for flag in moving)
        beside = [part for part in _arguments(one.call) if not _names(part, name)]
        given = [*beside, *uses.values_read(beside, name)]
        if may_set(project, symbol, one.call, words) or are_set_by(
            project, scope, cls, given, words
        ):
            raise _refusal(
                one.call, "what it is handed sets a flag that other layers in it may set, too"
            )
        moves.view(one.call, moving)
    if (handed or is_one_of_several) and (reason := uses.rebound(moving, node)):
        raise _refusal(node, reason)
    moves.partials[id(node)] = node
    moves.values |= {id(keyword.value) for keyword in moving}
    for one in built:
        own = {keyword.arg for keyword in one.call.keywords}
        if None in own:
            raise _refusal(
                one.call, "the arguments that are unpacked here may give what a partial does"
            )
        left = [keyword for keyword in moving if keyword.arg not in own]
        if is_one_of_several and len(left) < len(moving):
            raise _refusal(one.call, "the call gives what a partial of one of several does")
        if is_one_of_several:
            moves.view(one.call, left)
        else:
            uses.move(one.call, left, node, moves)


def _arguments(call: ast.Call) -> list[ast.AST]:
    return [*call.args, *call.keywords]


def _refusal(node: ast.AST, reason: str) -> Refused:
    return Refused(node, reason, "pass the argument where the layer is called", RULE)


def _names(node: ast.AST, name: str) -> list[ast.Name]:
    return [one for one in each(node, ast.Name) if one.id == name]


class _Uses:
    """Where a method calls what it built."""

    def __init__(self, method: ast.FunctionDef) -> None:
        self.parents = Parents(method)
        self.parameters = {*_parameters(method)}
        self.bound_again = bound_again(method)
        self.bindings: dict[str, list[ast.AST]] = {}
        self.loads: dict[str, list[ast.Name]] = {}
        for node in walk(method):
            if isinstance(node, ast.Name):
                target = self.loads if isinstance(node.ctx, ast.Load) else self.bindings
                target.setdefault(node.id, []).append(node)

    def bound_to(self, value: ast.AST) -> str | None:
        """The local name that holds ``value`` and nothing else."""
        match self.parents.of(value):
            case ast.Assign(targets=[ast.Name(id=name)]) if len(self.bindings[name]) == 1:
                return name
            case _:
                return None

    def bound_among(self, partial: ast.Call) -> str | None:
        """The local name that assignments bind to a partial and to other values."""
        match self._around_choices(partial):
            case ast.Assign(targets=[ast.Name(id=name)]) if len(self.values_of(name)) == len(
                self.bindings[name]
            ):
                return name
        return None

    def values_of(self, name: str) -> list[ast.expr]:
        """What assignments bind a name to."""
        found = [self.parents.of(one) for one in self.bindings.get(name, ())]
        return [one.value for one in found if isinstance(one, ast.Assign)]

    def values_read(self, nodes: Iterable[ast.AST], known: str) -> list[ast.expr]:
        """What the local names that are read in nodes, or in such values, are bound to, but for a known one."""
        found: dict[str, list[ast.expr]] = {known: []}
        todo = list(nodes)
        while todo:
            for one in each(todo.pop(), ast.Name):
                if one.id not in found:
                    found[one.id] = self.values_of(one.id)
                    todo += found[one.id]
        return [value for values in found.values() for value in values]

    def are_parameters(self, keywords: Iterable[ast.keyword]) -> bool:
        """Whether keywords read parameters of the method alone."""
        return {name for one in keywords for name in free_names(one.value)} <= self.parameters

    def _around_choices(self, value: ast.AST) -> ast.AST | None:
        """The statement that binds a value, also where it is one of two."""
        parent = self.parents.of(value)
        while isinstance(parent, ast.IfExp) and parent.test is not value:
            value, parent = parent, self.parents.of(parent)
        return parent

    def move(
        self, constructor: ast.Call, moving: list[ast.keyword], given: ast.Call, moves: Moves
    ) -> None:
        """Move keywords of ``given`` to the calls of what ``constructor`` builds.

        Raises:
          Refused: it is not just called, or a call would not get the same.
        """
        reason = self.fault(constructor, moving, given)
        if reason:
            raise _refusal(constructor, reason)
        moves.values |= {id(one.value) for one in moving}
        for call in self._calls_of(constructor):
            moves.calls.setdefault(id(call), []).extend(moving)

    def fault(self, constructor: ast.Call, moving: list[ast.keyword], given: ast.Call) -> str:
        """Why keywords cannot move to the calls; "" where they can."""
        calls = self._calls_of(constructor)
        if not calls:
            return "a constructor argument depends on the call, and the layer is not just called"
        names = {None, *(one.arg for one in moving)}
        if any(names & {one.arg for one in call.keywords} for call in calls):
            return "a call may give what the constructor is given, too"
        return self.rebound(moving, given) if calls != [self.parents.of(given)] else ""

    def _calls_of(self, constructor: ast.Call) -> list[ast.Call]:
        """The calls of the built module; none where it is used otherwise."""
        parent = self.parents.of(constructor)
        if isinstance(parent, ast.Call) and parent.func is constructor:
            return [parent]
        name = self.bound_to(constructor)
        loads = self.loads.get(name, []) if name is not None else []
        calls = [(self.parents.of(load), load) for load in loads]
        found = [one for one, load in calls if isinstance(one, ast.Call) and one.func is load]
        return found if len(found) == len(loads) else []

    def rebound(self, moving: Iterable[ast.keyword], given: ast.Call) -> str:
        """Why values of keywords may be others where a built layer is called; "" where they are not."""
        for name in sorted(name for one in moving for name in free_names(one.value)):
            if self.bound_again.get(name, (0, 0)) > (given.lineno, given.col_offset):
                return f"it reads {name!r}, which is bound again before the layer is called"
        return ""


def with_keywords(call: ast.Call, keywords: list[ast.keyword]) -> Callable[[Renderer], Expression]:
    """Edit: the call with more keywords."""

    def make(renderer: Renderer) -> Expression:
        plain = renderer.without(call).inner(call)
        found: Expression = with_arguments(plain, map(renderer.keyword, keywords), renderer.unit)
        return found

    return make


def without_keywords(call: ast.Call, values: set[int]) -> Callable[[Renderer], Expression]:
    """Edit: the call without the keywords whose values are in ``values``."""

    def make(renderer: Renderer) -> Expression:
        kept = [one for one in call.keywords if id(one.value) not in values]
        given = [*map(renderer.argument, call.args), *map(renderer.keyword, kept)]
        found: Expression = made_call(renderer.render(call.func), *given, unit=renderer.unit)
        return found

    return make
