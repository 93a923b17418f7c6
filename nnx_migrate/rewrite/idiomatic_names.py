"""Attributes in snake case: ``--names idiomatic``.

Linen's automatic names count classes, ``Block_0``. In explicit classes the attributes become ``block_0``,
and a decorator says what Linen calls them, so that variables keep their paths::

    @nnm.named_in_linen(block="Block")
    class Net(nnx.Module):
        def __init__(self, width, *, in_features, rngs):
            self.block_0 = Block(width, in_features=in_features, rngs=rngs)

The new texts of a run are read here. Names stay where another class inherits from theirs, where code of
the class has the new name already, where code elsewhere reads such an attribute, where a string of the class has
the old one, and of all that is no submodule.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from nnx_migrate.edit.data import EditError
from nnx_migrate.edit.expressions import attribute
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.edit.words import snake_case
from nnx_migrate.model import ClassMap, FileResult, Form, RewriteResult
from nnx_migrate.rewrite.classes.writing.linen_names import named_in_linen
from nnx_migrate.rewrite.imports import ImportConflict, settle_imports
from nnx_migrate.rewrite.loading import relative
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.walking import each, walk

_NUMBERED = re.compile(r"([A-Z]\w*)_(\d+)")


@dataclass(frozen=True)
class _Mention:
    """An attribute with an automatic name: ``self.Dense_0``, or ``f"Dense_{i}"`` given to ``setattr``.

    ``number`` is ``*`` for what is counted by a loop; ``value`` is what is stored under the name here.
    """

    node: ast.Attribute | ast.JoinedStr
    kind: str
    number: str
    value: ast.expr | None = None

    @property
    def builds(self) -> bool:
        """Whether a submodule that may have variables or streams is stored here."""
        found = self.value
        return isinstance(found, ast.Call) and any(one.arg == "rngs" for one in found.keywords)

    def rename(self, renderer: Renderer) -> Any:
        """The node with the name in snake case."""
        made: Any = renderer.inner(self.node)
        if isinstance(self.node, ast.Attribute):
            return attribute(made.value, f"{snake_case(self.kind)}_{self.number}")
        first, *rest = made.parts
        return made.with_changes(
            parts=[first.with_changes(value=f"{snake_case(self.kind)}_"), *rest]
        )


def with_idiomatic_names(request: RewriteRequest, result: RewriteResult) -> RewriteResult:
    """A result whose explicit classes have attributes in snake case."""
    base = request.base or request.root
    old = {relative(one.path, base): one.text for one in request.files}
    texts = {**old, **{one.path: one.code for one in result.files if one.code is not None}}
    trees = {path: tree for path, text in texts.items() if (tree := _parse(text)) is not None}
    others = [tree for one in request.context if (tree := _parse(one.text)) is not None]
    every = (*trees.values(), *others)
    used_names = {name for tree in every for name in (*_bases(tree), *_read_elsewhere(tree))}
    explicit = [one for one in result.classes if one.form is Form.EXPLICIT]
    files, maps = [], {one.nnx: one for one in result.migration_map.classes}
    for one in result.files:
        names = {found.name for found in explicit if found.path == one.path}
        made = (
            _File(one, trees[one.path], names, used_names) if names and one.path in trees else None
        )
        files.append(made.rename(maps) if made is not None and one.code is not None else one)
    classes = tuple(maps[one.nnx] for one in result.migration_map.classes)
    migration_map = replace(result.migration_map, classes=classes)
    return replace(result, files=tuple(files), migration_map=migration_map)


def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _bases(tree: ast.Module) -> Iterator[str]:
    for node in walk(tree):
        for one in node.bases if isinstance(node, ast.ClassDef) else ():
            yield ast.unparse(one).rpartition(".")[2]


def _read_elsewhere(tree: ast.Module) -> Iterator[str]:
    """The kinds of numbered attributes that are read of another object than a method's own."""
    own = {id(one.node) for _, cls in _classes(tree, "") for one in _mentions_of(cls)}
    for node in walk(tree):
        match node:
            case ast.Attribute(attr=word) if id(node) not in own:
                pass
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(word)), *_]):
                pass
            case _:
                continue
        if match := _NUMBERED.fullmatch(word):
            yield f"{match[1]}_"


@dataclass(frozen=True)
class _File:
    """A new text, with the qualified names of its explicit classes.

    ``used_names``: names of base classes, and kinds that code elsewhere reads (``Dense_``).
    """

    result: FileResult
    tree: ast.Module
    explicit: set[str]
    used_names: set[str]

    def rename(self, maps: dict[str, ClassMap]) -> FileResult:
        """The file with its classes' attributes renamed; ``maps`` say so of each class."""
        text = self.result.code or ""
        edits: dict[int, Replacement] = {}
        found: dict[str, list[_Mention]] = {}
        for name, node in _classes(self.tree, ""):
            qualified = self._qualified_name(name)
            if qualified is None or node.name in self.used_names:
                continue
            renamed = _renaming_mentions(node, text)
            mentions = [one for one in renamed if f"{one.kind}_" not in self.used_names]
            if mentions:
                found[qualified] = mentions
                edits |= {id(one.node): one.rename for one in mentions}
                edits[id(node)] = _with_decorators(node, {one.kind for one in mentions})
        if not edits:
            return self.result
        try:
            made = Renderer(text, self.tree, edits).render_module()
            needed = frozenset({"nnm"})
            made = settle_imports(made, self.tree, needed, "", lambda _: True)
        except (EditError, ImportConflict):
            return self.result
        for qualified, mentions in found.items():
            if qualified in maps:
                maps[qualified] = _new_map(maps[qualified], mentions)
        return replace(self.result, code=made.code)

    def _qualified_name(self, name: str) -> str | None:
        return next((q for q in self.explicit if q == name or q.endswith(f".{name}")), None)


def _new_map(class_map: ClassMap, mentions: list[_Mention]) -> ClassMap:
    attributes = {
        f"{one.kind}_{one.number}": f"{snake_case(one.kind)}_{one.number}" for one in mentions
    }
    return replace(class_map, attributes={**class_map.attributes, **attributes})


def _with_decorators(node: ast.ClassDef, kinds: set[str]) -> Replacement:
    return lambda renderer: [named_in_linen(renderer.inner(node), renderer.page, kinds=kinds)]


def _classes(node: ast.AST, above: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """Every class statement with its qualified name in the file."""
    for one in ast.iter_child_nodes(node):
        match one:
            case ast.ClassDef(name=name):
                yield f"{above}{name}", one
                yield from _classes(one, f"{above}{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield from _classes(one, f"{above}{name}.<locals>.")
            case _:
                yield from _classes(one, above)


# ---- names of one class


def _renaming_mentions(cls: ast.ClassDef, text: str) -> Iterator[_Mention]:
    """The mentions of a class's automatic names that may become snake case."""
    mentions = _mentions_of(cls)
    stores = [one for one in mentions if one.value is not None]
    own = {one.kind for one in stores} - {one.kind for one in stores if not one.builds}
    lines = "\n".join(text.splitlines()[cls.lineno - 1 : cls.end_lineno])
    strings = {n.value for n in each(cls, ast.Constant) if type(n.value) is str}
    shared = Counter(map(snake_case, own))
    for one in mentions:
        new = snake_case(one.kind)
        is_free = shared[new] == 1 and not keyword.iskeyword(new) and new.isidentifier()
        is_free = is_free and not re.search(rf"(?<![A-Za-z0-9]){new}_[\d{{]", lines)
        is_read = any(
            re.fullmatch(rf"{one.kind}_\d*", value) for value in strings - {f"{one.kind}_"}
        )
        if one.kind in own and is_free and not is_read:
            yield one


def _mentions_of(cls: ast.ClassDef) -> list[_Mention]:
    return [one for method in cls.body for one in _mentions(method)]


def _mentions(method: ast.AST) -> Iterator[_Mention]:
    if not isinstance(method, ast.FunctionDef) or not (args := method.args.args):
        return
    receiver = args[0].arg
    nodes = walk(method)
    assigns = [one for one in nodes if isinstance(one, ast.Assign)]
    stored = {id(target): one.value for one in assigns for target in one.targets}
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver:
                if match := _NUMBERED.fullmatch(attr):
                    value = stored.get(id(node))
                    if value is None and isinstance(node.ctx, ast.Store):
                        value = node  # stored in another way
                    yield _Mention(node, match[1], match[2], value)
            case ast.Call(
                func=ast.Name(id="setattr" | "getattr"),
                args=[ast.Name(id=name), ast.JoinedStr() as joined, *rest],
            ) if name == receiver:
                if kind := _class_of_counter(joined):
                    is_stored = node.func.id == "setattr"  # type: ignore[attr-defined]
                    yield _Mention(joined, kind, "*", rest[0] if is_stored else None)


def _class_of_counter(node: ast.JoinedStr) -> str | None:
    """``Dense`` of ``f"Dense_{i}"``."""
    match node.values:
        case [ast.Constant(value=str(start)), ast.FormattedValue()] if start.endswith("_"):
            return start[:-1] if _NUMBERED.fullmatch(f"{start}0") else None
    return None
