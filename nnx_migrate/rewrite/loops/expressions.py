"""What an expression is, as far as the loop is concerned; calls are read in `calls`."""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.loops.calls import read_call
from nnx_migrate.rewrite.loops.frame import Frame
from nnx_migrate.rewrite.loops.kinds import (
    PLAIN,
    UNKNOWN,
    ApplyFn,
    Definition,
    Function,
    Kind,
    Many,
    Params,
    State,
    Stats,
    Step,
    Updates,
    Variables,
    is_special,
    join,
    together,
)
from nnx_migrate.rewrite.loops.plan import DottedName, IndexChange
from nnx_migrate.rewrite.loops.shapes import width
from nnx_migrate.rewrite.loops.snapshots import snapshot
from nnx_migrate.source.walking import has_starred

_WORDS = {
    Variables: "the variables",
    Params: "the parameters",
    Stats: "running statistics",
    Updates: "what apply changed",
    State: "the state",
    Step: "state.step",
    ApplyFn: "apply_fn",
}


def value(frame: Frame, node: ast.expr) -> Kind:
    """What ``node`` is. What it does to a flow is noted in the frame."""
    match node:
        case ast.Name(ctx=ast.Load()):
            return _name(frame, node)
        case ast.Attribute(value=owner, attr=name):
            kind = value(frame, owner)
            return _attribute(frame, node, kind, name)
        case ast.Subscript(value=owner, slice=ast.Constant(value=index)):
            return _item(frame, node, value(frame, owner), index)
        case ast.Dict() if node.keys:
            return _dict(frame, node)
        case ast.Tuple(elts=elements) if not has_starred(elements):
            kinds = tuple(value(frame, one) for one in elements)
            return together(kinds)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _either(frame, test, body, orelse)
        case ast.Call():
            return read_call(frame, node)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return _comprehension(frame, node)
        case ast.Lambda():
            return _lambda(frame, node)
        case ast.NamedExpr(target=target, value=given_value):
            return _named(frame, target, given_value)
    plain(frame, node)
    return PLAIN


def plain(frame: Frame, node: ast.AST) -> None:
    """Read what must be nothing of a flow, down to its smallest part."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            used(frame, child, value(frame, child))
        else:
            plain(frame, child)


def used(frame: Frame, node: ast.expr, kind: Kind) -> None:
    """A value goes where nobody knows what becomes of it."""
    frame.escape(node, kind)
    if is_special(kind) and not snapshot(frame, node, kind):
        what = next((word for one, word in _WORDS.items() if isinstance(kind, one)), "it")
        text = ast.unparse(node).split("\n")[0]
        frame.problem(node, f"{what} `{text[:50]}` is used in a way that is not known")


def _name(frame: Frame, node: ast.Name) -> Kind:
    kind = frame.look_up(node)
    if kind == PLAIN:
        return _function(frame, node)
    if isinstance(kind, Function):
        frame.program.understood.add(id(node))
    return kind


def _function(frame: Frame, node: ast.expr) -> Kind:
    found = frame.program.project.function(frame.resolve(node) or None)
    if found is None or id(found) not in frame.program.nodes:
        return PLAIN
    frame.program.understood.add(id(node))
    return Function(id(found))


def _attribute(frame: Frame, node: ast.Attribute, kind: Kind, name: str) -> Kind:
    match kind:
        case State(flow=flow):
            if name == "params":
                return Variables(flow) if flow.whole else Params(flow)
            if name == "step":
                return Step(flow)
            if name == "apply_fn" and not flow.applies:
                reason = "the module that is applied may not be that of the parameters"
                return frame.problem(node, reason)
            if name == "apply_fn":
                return ApplyFn(flow.recipe, flow)
            if name in flow.stats:
                return Stats(flow)
            if name in dict(flow.fields):
                frame.change(node, DottedName(frame.need_field(node, flow, name)))
                return PLAIN
            return frame.problem(node, f"the state's {name} is used")
    if kind == UNKNOWN:
        return UNKNOWN
    if isinstance(kind, Definition) and name == "apply":
        return ApplyFn(kind.recipe)
    if is_special(kind):
        used(frame, node.value, kind)
        return PLAIN
    frame.escape(node, kind)
    return _function(frame, node)


def _item(frame: Frame, node: ast.Subscript, kind: Kind, index: object) -> Kind:
    match kind, index:
        case (Variables(flow=flow), "params" | "batch_stats"):
            if not flow.model:  # it stands for the call that gives the variables
                frame.change(node, IndexChange(None))
            return Params(flow) if index == "params" else Stats(flow)
        case (Variables(), _):
            return frame.problem(node, f"the collection {index} is read")
        case (Updates(flow=flow), "batch_stats"):
            return Stats(flow, is_updated=True)
        case (Many(items=items), int(at)) if -len(items) <= at < len(items):
            return _element(frame, node, items, at % len(items))
    if kind == UNKNOWN:
        return UNKNOWN
    used(frame, node.value, kind)
    return PLAIN


def _element(frame: Frame, node: ast.Subscript, items: tuple[Kind, ...], at: int) -> Kind:
    widths = [width(one) for one in items]
    if widths[at] == 1 and sum(widths) != len(items):
        frame.change(node, IndexChange(None if sum(widths) == 1 else sum(widths[:at])))
    elif widths[at] > 1:
        return frame.problem(node, "it is several values in NNX")
    return items[at]


def _dict(frame: Frame, node: ast.Dict) -> Kind:
    kinds = [value(frame, one) for one in node.values]
    if not any(map(is_special, kinds)):
        for one, kind in zip(node.values, kinds, strict=True):
            frame.escape(one, kind)
        return PLAIN
    names = [one.value if isinstance(one, ast.Constant) else None for one in node.keys]
    own = next((one for one in kinds if isinstance(one, Params)), None)
    fits = all(
        isinstance(kind, Params if name == "params" else Stats)
        and (name == "params" or name == "batch_stats")
        for name, kind in zip(names, kinds, strict=True)
    )
    same = own is not None and all(
        frame.is_same(own.flow, one.flow) for one in kinds if isinstance(one, Params | Stats)
    )
    if not fits or not same or own is None:
        for one, kind in zip(node.values, kinds, strict=True):
            used(frame, one, kind)
        return PLAIN
    if any(isinstance(one, Stats) and one.is_updated for one in kinds):
        return frame.problem(node, "running statistics are read before the state keeps them")
    return Variables(own.flow, frozenset(str(one) for one in names))


def _either(frame: Frame, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Kind:
    used(frame, test, value(frame, test))
    kinds = value(frame, body), value(frame, orelse)
    if any(map(is_special, kinds)):
        used(frame, body, kinds[0])
        used(frame, orelse, kinds[1])
        return PLAIN
    if kinds[0] == kinds[1]:
        return kinds[0]
    frame.escape(body, kinds[0])
    frame.escape(orelse, kinds[1])
    return join(*kinds) or PLAIN


def _comprehension(frame: Frame, node: ast.expr) -> Kind:
    branch = frame.copy()
    for generator in node.generators:  # type: ignore[attr-defined]
        used(frame, generator.iter, value(frame, generator.iter))
        for one in ast.walk(generator.target):
            if isinstance(one, ast.Name):
                frame.names[one.id] = PLAIN
        for test in generator.ifs:
            used(frame, test, value(frame, test))
    parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]  # type: ignore[attr-defined]
    for part in parts:
        used(frame, part, value(frame, part))
    frame.leave(node, branch)
    return PLAIN


def _lambda(frame: Frame, node: ast.Lambda) -> Kind:
    for default in (*node.args.defaults, *node.args.kw_defaults):
        if default is not None:
            used(frame, default, value(frame, default))
    branch = frame.copy()
    frame.shadow(node)
    used(frame, node.body, value(frame, node.body))
    frame.leave(node, branch)
    return PLAIN


def _named(frame: Frame, target: ast.Name, operand: ast.expr) -> Kind:
    """``(name := value)``: a value, and the name of nothing that is followed, as it may not come to it."""
    used(frame, operand, value(frame, operand))
    frame.bind_plainly(target, target.id)
    return PLAIN
