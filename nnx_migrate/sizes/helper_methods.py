"""Methods that build submodules for the compact method of their own class.

``def block(self, x, width): return nn.relu(nn.Dense(width)(x))``, called as ``self.block(x, 4)`` in
the compact method, builds a ``Dense`` of the module as the compact method itself does. Such a helper
method counts when all that the project does with its name is to call it on ``self`` there, or in
another helper method of the class.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nnx_migrate.sizes.own_calls import RECEIVER, calls_on_self
from nnx_migrate.sizes.return_values import is_module_class, returned_modules
from nnx_migrate.sizes.static_parameters import Call, parameters_of
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.facts import Fact
from nnx_migrate.source.growth import grown
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import is_self, walk

# Names of what the new method takes beside the old parameters.
_TAKEN = frozenset({"names", "rngs"})
# What makes other things than submodules, or asks for where the module stands.
_BEYOND = frozenset(
    "variable make_rng sow perturb put_variable get_variable has_variable has_rng scope name"  # noqa: SIM905
    " is_initializing is_mutable_collection parent path apply bind init init_with_output lazy_init"
    " variables clone copy".split()
)


@dataclass(frozen=True)
class HelperMethod:
    """A helper method, its calls, and the function that callers see: without its receiver."""

    cls: ClassInfo
    node: ast.FunctionDef
    function: ast.FunctionDef
    calls: tuple[Call, ...]


def helper_methods(project: Project) -> dict[int, HelperMethod]:
    """The helper methods of a project by ``id`` of their node."""
    found: dict[int, HelperMethod] = {}
    for cls in project.linen.values():
        nodes = _candidates(project, cls)
        if nodes and not is_inherited(project, cls):
            found |= _safe_helpers(project, cls, nodes)
    return found


def without_receiver(node: ast.FunctionDef) -> ast.FunctionDef:
    """The function that ``self.name`` is: the same body, one parameter less."""
    spec = node.args
    bound = ast.arguments(
        posonlyargs=[],
        args=[*spec.posonlyargs, *spec.args][1:],
        vararg=None,
        kwonlyargs=spec.kwonlyargs,
        kw_defaults=spec.kw_defaults,
        kwarg=None,
        defaults=spec.defaults,
    )
    copied = ast.FunctionDef(node.name, bound, node.body, [], node.returns)
    return ast.copy_location(copied, node)


def _candidates(project: Project, cls: ClassInfo) -> dict[str, ast.FunctionDef]:
    """Methods that build submodules, also through each other, and do nothing beyond that."""
    plain = {
        name: node
        for name, node in cls.methods.items()
        if name != "setup"
        and not name.startswith("__")
        and not returned_modules(project, cls.scope, node)
        and _is_plain(project, cls, node)
    }
    building = grown(
        (name for name, node in plain.items() if _builds(project, cls, node)),
        lambda found: (name for name, node in plain.items() if found & set(_calls_of_self(node))),
    )
    return {name: plain[name] for name in cls.methods if name in building}


def _is_plain(project: Project, cls: ClassInfo, node: ast.FunctionDef) -> bool:
    spec = node.args
    made = {"param"} if node.decorator_list else set()  # a compact method makes its own
    beyond = (_BEYOND | made) - cls.field_names
    if not _counts_on(project, cls, node) or spec.vararg or spec.kwarg or spec.posonlyargs:
        return False
    if parameters_of(node)[:1] != (RECEIVER,):
        return False
    nodes = list(walk(node))
    others = (ast.Yield, ast.YieldFrom, ast.ClassDef, ast.Global, ast.Nonlocal)
    names = {one.id for one in nodes if isinstance(one, ast.Name)} | set(parameters_of(node))
    own = [one for one in nodes if isinstance(one, ast.Attribute) and is_self(one.value)]
    return (
        not names & _TAKEN
        and not any(isinstance(one, others) for one in nodes)
        and all(one.attr not in beyond and isinstance(one.ctx, ast.Load) for one in own)
    )


def _counts_on(project: Project, cls: ClassInfo, node: ast.FunctionDef) -> bool:
    """Whether Linen numbers what the method builds in one row with what its caller does.

    It does so in compact methods, too, and forgets there which names are taken.
    """
    if not node.decorator_list:
        return True
    named = any(isinstance(one, ast.keyword) and one.arg in ("name", None) for one in walk(node))
    return project.decorators(cls, node) == ("flax.linen.compact",) and not named


def _builds(project: Project, cls: ClassInfo, node: ast.FunctionDef) -> bool:
    scope = cls.scope.enter(node)
    return "param" in _calls_of_self(node) or any(
        isinstance(one, ast.Call) and is_module_class(project, project.resolve(one.func, scope))
        for one in walk(node)
    )


def _calls_of_self(node: ast.AST) -> Iterator[str]:
    """Names of the methods that code calls on its own module."""
    for one in walk(node):
        match one:
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if is_self(value):
                yield name


def is_inherited(project: Project, cls: ClassInfo) -> bool:
    """Whether methods of the class may be those of another one."""
    return id(cls) in _bases(project) or any(one.linen for one in cls.mro[1:])


@Fact  # every class asks
def _bases(project: Project) -> frozenset[int]:
    """The ``id`` of the classes that others inherit from."""
    return frozenset(id(base) for one in project.classes.values() for base in one.mro[1:])


def _safe_helpers(
    project: Project, cls: ClassInfo, nodes: Mapping[str, ast.FunctionDef]
) -> dict[int, HelperMethod]:
    """Those whose every mention is a call that runs in a compact method, and that do not recur."""
    remaining = dict(nodes)
    while True:
        homes = {id(one): one for one in remaining.values()}
        compact = [
            one
            for one in cls.methods.values()
            if project.is_compact(cls, one) and id(one) not in homes
        ]
        calls = {
            name: calls_on_self(project, cls, name, [*compact, *remaining.values()])
            for name in remaining
        }
        wrong = {name for name, found in calls.items() if not found or _recurs(name, remaining)}
        wrong |= {
            name
            for name in remaining
            if {f"init_{name}", f"_init{name}"} & (cls.field_names | cls.method_names)
        }
        if not wrong:
            break
        remaining = {name: node for name, node in remaining.items() if name not in wrong}
    called = {id(node): without_receiver(node) for node in remaining.values()}
    found: dict[int, HelperMethod] = {}
    for name, node in remaining.items():
        own = tuple(
            Call(call, called.get(id(home), home), id(home) if id(home) in homes else None)
            for call, home in calls[name] or ()
        )
        found[id(node)] = HelperMethod(cls, node, called[id(node)], own)
    return found


def _recurs(name: str, nodes: Mapping[str, ast.FunctionDef]) -> bool:
    """Whether a helper is among those that it calls, at any remove."""
    visited: set[str] = set()
    todo = [name]
    while todo:
        for one in _calls_of_self(nodes[todo.pop()]):
            if one in nodes and one not in visited:
                visited.add(one)
                todo.append(one)
    return name in visited


def as_class(helper: HelperMethod) -> ClassInfo:
    """The helper as a class whose compact ``__call__`` it is; the rest it has from its own class."""
    cls, node = helper.cls, helper.node
    method = ast.FunctionDef("__call__", node.args, node.body, [], node.returns)
    statement = ast.ClassDef(cls.node.name, [], [], [ast.copy_location(method, node)], [])
    return ClassInfo(
        f"{cls.name}.{node.name}",
        cls.module,
        ast.copy_location(statement, node),
        cls.scope,
        (cls.name,),
        (cls,),
        linen=True,
        function=node,
    )
