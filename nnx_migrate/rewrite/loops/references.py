"""Names and words by which code may mean a function whose arguments or results change."""

from __future__ import annotations

import ast

from nnx_migrate.rewrite.imports import is_imported
from nnx_migrate.rewrite.loops.program import Problem, Program
from nnx_migrate.source.project import Module, Project, Scope


def stray_references(program: Program, function: ast.FunctionDef, home: Module) -> Problem | None:
    """A place that may mean the function and that the reading of its calls did not come to."""
    name = function.name
    for module in program.project.modules.values():
        for node in module.nodes:
            match node:
                case ast.Name(id=word, ctx=ast.Load()) | ast.Attribute(attr=word, ctx=ast.Load()):
                    if word != name or id(node) in program.understood:
                        continue
                    if not _is_other(program, node, function, module, home):
                        return Problem(module.path, node, f"{name} is used here in an unknown way")
                case ast.Call() if _takes_by_name(program, node, name, module, home):
                    return Problem(module.path, node, f"{name} may be taken by its name here")
    return None


def stray_alias(program: Program, function: int) -> Problem | None:
    """A place in another file that takes the function by a name that holds it."""
    for home, alias, target in program.aliases:
        if target != function or alias == program.nodes[function][0].name:
            continue
        for module in program.project.modules.values():
            if module.name == home:
                continue
            for node in module.by_word.get(alias, ()):
                symbol = program.project.resolve(node, Scope(module).around(node))
                if symbol == f"{home}.{alias}":
                    return Problem(module.path, node, f"{alias} is used here in an unknown way")
    return None


def is_taken(project: Project, module: Module, name: str) -> bool:
    """Whether another file may take a name from this one."""
    if "__all__" in module.table:
        return True
    for other in project.modules.values():
        if other is module:
            continue
        if other.stars or any(
            isinstance(one, ast.Attribute) for one in other.by_word.get(name, ())
        ):
            return True
    return is_imported(project, module, name)


def _is_other(
    program: Program, node: ast.expr, function: ast.FunctionDef, module: Module, home: Module
) -> bool:
    """Whether a name means something else for sure."""
    scope = program.nodes[id(function)][1]
    is_top = function in home.tree.body
    if isinstance(node, ast.Name) and module is not home and name_is_free(module, node.id):
        return True
    if not is_top and module is not home:
        return True
    if isinstance(node, ast.Attribute) and not is_top:
        return True
    around = Scope(module).around(node)
    found = program.project.resolve(node, around)
    if found is None and isinstance(node, ast.Name) and is_top:
        return any(node.id in table for table in around.tables)  # a parameter or local of that name
    if found is None and isinstance(node, ast.Attribute):
        # Of a value, not of a module, unless modules are values here.
        return not any(word in module.text for word in _MODULES_AS_VALUES)
    symbol = f"{scope.module.name}.{function.name}"
    return found is not None and is_top and found != symbol


def name_is_free(module: Module, name: str) -> bool:
    """Whether a module binds a name itself to something of its own, or not at all."""
    return name not in module.table and not module.stars


def _takes_by_name(
    program: Program, node: ast.Call, name: str, module: Module, home: Module
) -> bool:
    """``getattr(train, "step")``, ``mock.patch("train.step")``, ``globals()`` beside the function."""
    function = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    function = node.func.id if isinstance(node.func, ast.Name) else function
    if function in ("globals", "vars", "locals"):
        return module is home and function == "globals"
    if function not in _TAKERS and "patch" not in function:
        return False
    words = [one.value for one in node.args if isinstance(one, ast.Constant)]
    if any(isinstance(one, str) and name in one.replace(":", ".").split(".") for one in words):
        return True
    if function != "getattr" or len(node.args) < 2 or isinstance(node.args[1], ast.Constant):
        return False
    symbol = program.project.resolve(node.args[0], Scope(module).around(node))
    return symbol == home.name


_MODULES_AS_VALUES = ("import_module", "__import__", "sys.modules")
_TAKERS = ("getattr", "setattr", "attrgetter", "methodcaller", "object")
