"""What makes a class unconvertible or worth a look once it was run."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from nnx_migrate.abstract.values import Instance, Submodule
from nnx_migrate.constructs import layer_of
from nnx_migrate.sizes.builders import called_builder
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.module_arguments import holds_state
from nnx_migrate.source.overrides import methods_run
from nnx_migrate.source.project import Project, Scope
from nnx_migrate.source.walking import walk


def misplaced_submodules(analysis: ClassAnalysis) -> Iterator[tuple[ast.AST, str]]:
    """Submodules built where ``__init__`` cannot build them."""
    inside = analysis.nodes_by_id
    rounds = [node for node in inside.values() if isinstance(node, ast.While)]
    repeated = {id(node) for loop in rounds for node in walk(loop)}
    for key, module in analysis.interpreter.submodules.items():
        assert module.call is not None
        if key not in inside:
            text = ast.unparse(module.call.func)
            yield analysis.root.info.node, f"a function outside the class builds {text} for it"
        elif key in repeated:
            yield module.call, f"{ast.unparse(module.call.func)} is built in a while loop"
        elif isinstance(module, Instance) and module.info is analysis.root.info:
            yield module.call, "the class constructs itself"
    handled = analysis.interpreter.scope_functions.keys() | analysis.interpreter.factories.keys()
    returned = {
        id(one) for made in analysis.interpreter.factories.values() for one, _ in made.calls
    }
    for scope, call in _own_calls(analysis.interpreter.project, analysis.root, handled):
        if id(call) in returned:
            continue
        symbol = analysis.interpreter.project.resolve(call.func, scope)
        if (
            symbol in analysis.interpreter.project.linen
            and id(call) not in analysis.interpreter.submodules
        ):
            yield call, f"{symbol} is built where size inference did not come by"
            continue
        builder = called_builder(analysis.interpreter.project, scope, call)
        if builder is not None and id(call) not in analysis.interpreter.entered_calls:
            yield call, f"{builder} builds submodules for it and cannot be followed"


def _own_calls(
    project: Project, root: Instance, helpers: Collection[int]
) -> Iterator[tuple[Scope, ast.Call]]:
    """Calls in the methods that an instance runs, inner functions included, with the methods' scopes.

    Those in helper methods belong to the analyses of these.
    """
    for cls, method in methods_run(project, root.info):
        if id(method) in helpers or (root.info.function is not None and cls is not root.info):
            continue
        names = {ast.unparse(one) for one in method.decorator_list}
        if not names & {"staticmethod", "classmethod"}:
            scope = cls.scope.enter(method)
            yield from ((scope, one) for one in _calls(method))


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield child
        if not isinstance(child, ast.ClassDef):
            yield from _calls(child)


_UNREACHED = (
    "__call__ never reaches this submodule: Linen's init through __call__ makes no parameters for"
    " it, the NNX module has them"
)


def only_elsewhere(analysis: ClassAnalysis) -> Iterator[tuple[ast.AST, str]]:
    """Submodules with variables that ``__call__`` never reaches but another method does.

    Whether builders of the class reach those of ``analysis.elsewhere`` is for others to prove.
    """
    if analysis.root.info.find("__call__") is None:
        return
    proven = {id(one.call) for one in analysis.elsewhere}
    for module in analysis.interpreter.submodules.values():
        if id(module.call) in proven:
            continue
        uses = analysis.root.records.get(id(module.call), [])
        layer = layer_of(module.symbol) if isinstance(module, Submodule) else None
        stateless = layer is not None and layer.is_stateless
        if uses and not stateless and not any(use.primary for use in uses):
            assert module.call is not None
            yield module.call, _UNREACHED


# ---- submodules that a lift over axes runs, as nn.vmap and nn.scan do


def refuse_parts(analysis: ClassAnalysis, module: Submodule | Instance) -> None:
    """One that is given other submodules: Linen lifts their variables, too, where they are made."""
    if not isinstance(module, Instance) or not module.lifts:
        return
    assert module.call is not None
    for name, value in module.fields.items():
        if holds_state(analysis, value):
            reason = f"it is lifted over axes, and so is the submodule that it is given as {name!r}"
            analysis.problems.append((module.call, reason))
