"""Uses of converted classes that the explicit form does not follow."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nnx_migrate.rewrite.attempt import Attempt
from nnx_migrate.rewrite.proof.graph import loaded_word
from nnx_migrate.rewrite.proof.ways import ways_to
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Module, Project
from nnx_migrate.source.walking import walk

Use = tuple[str, int, str]  # path, line, why

_CLASS_NAMES = ("cls", "class", "type", "factory", "ctor", "constructor")


def doubtful_uses(project: Project, attempt: Attempt) -> Iterator[Use]:
    """Places that use a converted class in a way nobody has proven."""
    converted = [project.linen[name] for name in attempt.decisions.converted]
    names = {cls.node.name for cls in converted}
    names |= _made_of(project, names)
    inside = {id(cls.node) for cls in converted}
    for module in project.modules.values():
        if names.isdisjoint(_identifiers(module)):
            continue
        edited = attempt.edited.get(module.path, frozenset())
        yield from _handed_on(module, names, inside, edited)
    for cls in converted:
        for way in ways_to(project, cls, attempt):
            yield way.path, way.line, way.reason
            yield cls.module.path, cls.node.lineno, f"{way.reason} ({way.path}:{way.line})"
        yield from _keepers(project, cls)
        yield from _borrowed(project, cls)
        if cls.name in attempt.lazily and cls.name in attempt.placed:
            continue  # every place that builds it shows what the fields are given
        for use in _classes_in_fields(project, cls):
            yield use
            # Which classes it is given is not known; those of its file are the likeliest.
            beside = (one for one in converted if one.module is cls.module)
            yield from ((one.module.path, one.node.lineno, use[2]) for one in beside)


def _keepers(project: Project, cls: ClassInfo) -> Iterator[Use]:
    """Decorators that do more with the class than look at it: they may keep it for others to build."""
    for decorator in cls.node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        function = project.function(project.resolve(target, cls.scope))
        if function is not None and _keeps(function, isinstance(decorator, ast.Call)):
            line = cls.node.lineno
            yield cls.module.path, line, f"the decorator {function.name} hands the class on"


def _borrowed(project: Project, cls: ClassInfo) -> Iterator[Use]:
    """Methods of other classes as the class's own: ``__call__ = Other.__call__`` builds here."""
    for statement in cls.node.body:
        match statement:
            case ast.Assign(value=ast.Attribute(value=owner, attr=name)):
                other = project.linen.get(project.resolve(owner, cls.scope) or "")
                if other is not None and other.find(name) is not None:
                    yield cls.module.path, statement.lineno, f"{name} is another class's method"


def _keeps(function: ast.FunctionDef, is_called: bool) -> bool:
    """Whether parameters of a function, or of one inside it, are more than returned and looked at.

    ``def register(cls): REGISTRY[cls.__name__] = cls; return cls`` keeps what it is given. A decorator
    that is called first gets the class by a function inside it.
    """
    nodes = list(walk(function))
    inner = [one for one in nodes[1:] if isinstance(one, ast.FunctionDef | ast.Lambda)]
    taking = inner if is_called and inner else [function]
    parameters = {one.arg for taker in taking for one in walk(taker) if isinstance(one, ast.arg)}
    fine = {id(one.value) for one in nodes if isinstance(one, ast.Return | ast.Attribute)}
    return any(
        isinstance(one, ast.Name) and one.id in parameters and id(one) not in fine for one in nodes
    )


def _identifiers(module: Module) -> set[str]:
    """Every word by which a file may mean a class."""
    found: set[str] = set()
    for node in module.nodes:
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.alias(name=word):
                found.add(word)
            case ast.Constant(value=str() as word):
                found.add(word)
    return found


def _handed_on(
    module: Module, names: set[str], inside: set[int], edited: frozenset[int]
) -> Iterator[Use]:
    """Classes as values outside of converted classes, and constructor calls nobody rewrote."""
    meant = names | {
        alias.asname
        for node in module.nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname and alias.name in names
    }
    todo: list[tuple[ast.AST, bool]] = [(module.tree, False)]
    while todo:
        node, fine = todo.pop()
        if id(node) in inside:
            continue
        fine = fine or (id(node) in edited and not _is_loose_lift(module, node, names))
        word = None if fine else _word(node)
        if word in meant:
            line = getattr(node, "lineno", 1)
            yield module.path, line, f"the class {word} is used here as it was"
        todo.extend((child, fine or _is_about_types(node, child)) for child in _children(node))


def _is_loose_lift(module: Module, node: ast.AST, names: set[str]) -> bool:
    """Whether a class is lifted where the result gets no name that can be followed."""
    if not isinstance(node, ast.Call) or not any(_word(one) in names for one in node.args):
        return False
    named = (one.value for one in module.tree.body if isinstance(one, ast.Assign))
    return not any(one is node for one in named)


def _word(node: ast.AST) -> str | None:
    """The name that a node loads, also by a string."""
    match node:
        case ast.Subscript(slice=ast.Constant(value=str() as word)):
            return word
    return loaded_word(node)


def _made_of(project: Project, names: set[str]) -> set[str]:
    """Top-level names for something made of a class that is not an instance: ``nn.vmap(Block)``."""
    found: set[str] = set()
    for module in project.modules.values():
        for statement in module.tree.body:
            if isinstance(statement, ast.Assign) and _holds(statement.value, names):
                found |= {one.id for one in statement.targets if isinstance(one, ast.Name)}
    return found


def _holds(value: ast.expr, names: set[str]) -> bool:
    called = {id(one.func) for one in walk(value) if isinstance(one, ast.Call)}
    return any(_word(one) in names and id(one) not in called for one in walk(value))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    return ast.iter_child_nodes(node)


def _is_about_types(node: ast.AST, child: ast.AST) -> bool:
    """Annotations, and what ``isinstance`` asks for: the class by its name."""
    if child in (getattr(node, "annotation", None), getattr(node, "returns", None)):
        return True
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("isinstance", "issubclass")
        and len(node.args) == 2
        and child is node.args[1]
    )


def _classes_in_fields(project: Project, cls: ClassInfo) -> Iterator[Use]:
    """``layer_cls: nn.Module`` that is called to build something: it holds a class."""
    fields = {one.name for one in cls.fields if _is_module(project, cls, one.annotation)}
    if not fields:
        return
    for owner in cls.mro:
        for method in owner.methods.values():
            outer = {id(one.func) for one in walk(method) if isinstance(one, ast.Call)}
            for node in walk(method):
                match node:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                        builds = method.name == "setup" or id(node) in outer
                        if name in fields and (builds or name.lower().endswith(_CLASS_NAMES)):
                            reason = (
                                f"the field {name} says it holds a module and is called as a class"
                            )
                            yield owner.module.path, node.lineno, reason


def _is_module(project: Project, cls: ClassInfo, annotation: ast.expr) -> bool:
    for node in walk(annotation):
        if isinstance(node, ast.Name | ast.Attribute):
            symbol = project.resolve(node, cls.scope)
            if symbol == "flax.linen.Module" or symbol in project.linen:
                return True
    return False
