"""Judges an explicit attempt: which of its classes have a place that is not proven."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from nnx_migrate import ledger
from nnx_migrate.model import Outcome, RewriteResult
from nnx_migrate.rewrite.attempt import Attempt
from nnx_migrate.rewrite.classes.fields.keeping_decorators import keeping_decorators
from nnx_migrate.rewrite.loading import RewriteInput
from nnx_migrate.rewrite.proof.changed_layers import changed_layers
from nnx_migrate.rewrite.proof.class_fields import class_field_doubts
from nnx_migrate.rewrite.proof.doubt import Doubt, is_of_arrays
from nnx_migrate.rewrite.proof.graph import graph_of
from nnx_migrate.rewrite.proof.lazily import lazy_doubts
from nnx_migrate.rewrite.results import staying_names
from nnx_migrate.rewrite.workers import Team
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import callee_of, each, walk


def judge(
    inputs: RewriteInput, attempt: Attempt, books: ledger.Ledger, result: RewriteResult, team: Team
) -> dict[str, Doubt]:
    """Converted classes that may not be explicit, by name: what of each is not proven.

    Code around them builds them by ``lazy(Class)``, so each is judged by itself.
    """
    targets = frozenset(module.name for module in inputs.targets.values())
    left = _left(books, result, staying_names(inputs.project, attempt.decisions))
    doubts = dict(_inside(inputs, attempt, [*left, *_uses(inputs, attempt)]))
    doubts |= _missing_lazy_forms(inputs, attempt, books)
    doubts |= dict(class_field_doubts(inputs.project, attempt))
    if change := changed_layers(inputs.project):
        doubts |= dict.fromkeys(attempt.decisions.conversions, change)
    return doubts | lazy_doubts(inputs.project, targets, attempt, graph_of(inputs.project), team)


def _inside(
    inputs: RewriteInput, attempt: Attempt, doubts: list[Doubt]
) -> Iterator[tuple[str, Doubt]]:
    """What is unproven in the text of a class."""
    for name in attempt.decisions.conversions:
        cls = inputs.project.linen[name]
        lines = range(cls.node.lineno, (cls.node.end_lineno or cls.node.lineno) + 1)
        for one in doubts:
            if one.path == cls.module.path and one.line in lines:
                yield name, one


def _missing_lazy_forms(
    inputs: RewriteInput, attempt: Attempt, books: ledger.Ledger
) -> dict[str, Doubt]:
    """Classes that functions take by annotation and call in Linen's way, and that others build.

    ``def create(key, actor: Actor): return actor.init(key, x)`` in a library: who hands in an actor
    writes ``Actor(8)``, out of sight.
    """
    reason = "its callers call Linen's methods on it, and what they are given is built elsewhere"
    converted = (inputs.project.linen[name] for name in attempt.decisions.conversions)
    return {
        cls.name: Doubt(cls.module.path, cls.node.lineno, reason)
        for cls in converted
        if cls.dotted_name in books.missing_lazy_forms
    }


def _uses(inputs: RewriteInput, attempt: Attempt) -> Iterator[Doubt]:
    return (Doubt(*use) for use in doubtful_uses(inputs.project, attempt))


def _left(
    books: ledger.Ledger, result: RewriteResult, staying: Collection[tuple[str, int, int]]
) -> Iterator[Doubt]:
    """References, calls and findings that an explicit attempt leaves, and what it builds unproven.

    Args:
      staying: the places of names that lazy submodules need.
    """
    entries = [*books.reference_entries, *books.call_site_entries, *books.handle_entries]
    for entry in entries:
        at = (entry.place.path, entry.place.line, entry.place.column)
        is_harmless = at in staying or is_of_arrays(entry.place.symbol)
        if entry.outcome is Outcome.REFUSED and not is_harmless:
            what = f"{entry.place.symbol} is not rewritten here"
            yield Doubt(entry.place.path, entry.place.line, what)
    harmless = {entry.place.at for entry in entries if is_of_arrays(entry.place.symbol)}
    for one in result.findings:
        at = (one.path, one.line, one.column)
        if one.outcome is Outcome.REFUSED and at not in harmless:
            yield Doubt(one.path, one.line, one.message)


# ---- uses of converted classes that the explicit form does not follow

Use = tuple[str, int, str]  # path, line, why

_OF_CLASSES = ("Type", "type", "Callable")
_CLASS_NAMES = ("cls", "class", "type", "factory", "ctor", "constructor")


def doubtful_uses(project: Project, attempt: Attempt) -> Iterator[Use]:
    """Places of converted classes that do with a class what nobody has proven."""
    converted = [project.linen[name] for name in attempt.decisions.conversions]
    for cls in converted:
        yield from _keepers(project, cls)
        yield from _foreign_methods(project, cls)
        if cls.name in attempt.mentions:
            continue  # every place that builds it shows what the fields are given
        for use in _classes_in_fields(project, cls):
            yield use
            # Which classes it is given is not known; those of its file are the likeliest.
            beside = (one for one in converted if one.module is cls.module)
            yield from ((one.module.path, one.node.lineno, use[2]) for one in beside)


def _keepers(project: Project, cls: ClassInfo) -> Iterator[Use]:
    """Decorators that do more with the class than look at it: they may keep it for others to build."""
    keeping = keeping_decorators(project, cls)
    for decorator in cls.node.decorator_list:
        if decorator in keeping:
            continue
        target = callee_of(decorator)
        function = project.function(project.resolve(target, cls.scope))
        if function is not None and _keeps(function, isinstance(decorator, ast.Call)):
            line = cls.node.lineno
            yield cls.module.path, line, f"the decorator {function.name} hands the class on"


def _foreign_methods(project: Project, cls: ClassInfo) -> Iterator[Use]:
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
    parameters = {one.arg for taker in taking for one in each(taker, ast.arg)}
    fine = {id(one.value) for one in nodes if isinstance(one, ast.Return | ast.Attribute)}
    return any(
        isinstance(one, ast.Name) and one.id in parameters and id(one) not in fine for one in nodes
    )


def _classes_in_fields(project: Project, cls: ClassInfo) -> Iterator[Use]:
    """``layer_cls: nn.Module`` that is called to build something: it holds a class."""
    fields = {one.name for one in cls.fields if _is_module(project, cls, one.annotation)}
    if not fields:
        return
    for owner in cls.mro:
        for method in owner.methods.values():
            outer = {id(one.func) for one in each(method, ast.Call)}
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
    """Whether an annotation names a module; ``type[nn.Module]`` and ``Callable[..., nn.Module]`` do not."""
    match annotation:
        case ast.Subscript(value=ast.Name(id=word) | ast.Attribute(attr=word)) if (
            word in _OF_CLASSES
        ):
            return False
    for node in walk(annotation):
        if isinstance(node, ast.Name | ast.Attribute):
            symbol = project.resolve(node, cls.scope)
            if symbol == "flax.linen.Module" or symbol in project.linen:
                return True
    return False
