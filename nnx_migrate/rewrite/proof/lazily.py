"""Judges explicit classes, which code around them builds by ``lazy(Class)``: each by what is done with it.

Code around such a class keeps Linen's style and sees lazy modules only. So its calls need no proof;
what does is every way to the class itself that is not in sight, and every use that a lazy form of an
explicit class does not carry.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from nnx_migrate.constructs import is_linen
from nnx_migrate.constructs.common.base import Context
from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.attempt import Attempt
from nnx_migrate.rewrite.links import links_of
from nnx_migrate.rewrite.outside.class_members import class_named
from nnx_migrate.rewrite.outside.places import Place, places_of
from nnx_migrate.rewrite.proof.called_parameters import called_parameters
from nnx_migrate.rewrite.proof.doubt import Doubt, is_of_arrays
from nnx_migrate.rewrite.proof.factories import factory_fields, factory_reads
from nnx_migrate.rewrite.proof.field_modules import Arguments, FieldModules
from nnx_migrate.rewrite.proof.graph import Graph, loaded_word
from nnx_migrate.rewrite.proof.inside import Read, reads
from nnx_migrate.rewrite.proof.layer_fields import held_layers, layer_field_reads
from nnx_migrate.rewrite.proof.members import owners_of, plain_members
from nnx_migrate.rewrite.proof.own_names import own_names
from nnx_migrate.rewrite.proof.reading import (
    asking_inside,
    keys_of_data,
    read_by,
    words_of,
)
from nnx_migrate.rewrite.proof.starts import said_around_starts
from nnx_migrate.rewrite.proof.temporary_modules import is_temporary
from nnx_migrate.rewrite.proof.unbound import (
    is_special,
    method_attributes,
    methods_of,
    special_methods,
    unbound_methods,
    words_read,
)
from nnx_migrate.rewrite.proof.ways import ways_to
from nnx_migrate.rewrite.workers import Team
from nnx_migrate.sizes.result import SiteKind
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import last_name, name_parts
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import is_self, walk

_LONGEST = 200  # characters of a string that is a path of names


def lazy_doubts(
    project: Project, targets: frozenset[str], attempt: Attempt, graph: Graph, team: Team
) -> dict[str, Doubt]:
    """Classes that must not be explicit, and the first reason of each.

    Args:
      targets: names of the modules that are rewritten.
      team: who reads the files.
    """
    found: dict[str, Doubt] = {}
    judge = _Judge(project, targets, attempt, graph, team)
    for name, doubt in judge.doubts():
        if name in attempt.decisions.conversions:
            found.setdefault(name, doubt)
    return found


@dataclass
class _Judge:
    project: Project
    targets: frozenset[str]
    attempt: Attempt
    graph: Graph
    team: Team

    def __post_init__(self) -> None:
        linen = self.project.linen
        self.converted = [linen[name] for name in sorted(self.attempt.decisions.conversions)]
        self.by_word: dict[str, list[ClassInfo]] = {}
        for cls in self.converted:
            self.by_word.setdefault(cls.node.name, []).append(cls)
        converted = self.attempt.decisions.conversions
        decisions = self.attempt.decisions
        scopes = [one for one in decisions.scope_functions.values() if not one.stays]
        self.explicit = frozenset(
            [
                *(id(linen[name].node) for name in converted),
                *(id(one.node) for one in decisions.factories),
                *(key for one in scopes for key in one.edits),
            ]
        )

    def doubts(self) -> Iterator[tuple[str, Doubt]]:
        """Classes and what is doubtful about them."""
        if not self.converted:
            return
        for path, every in self.attempt.doubts.items():
            for one in every:
                yield one.cls, Doubt(path, getattr(one.node, "lineno", 1), one.reason, one.field)
        apart = self.team.divide(
            {"read": lambda: [*self._read()], "members": lambda: [*self._members()]}
        )
        yield from apart["read"]
        yield from self._builders()

        def to(name: str) -> list[Doubt]:
            return [*ways_to(self.project, self.project.linen[name], self.attempt)]

        classes = {cls.name: cls.module.path for cls in self.converted}
        for name, ways in self.team.each(classes, to).items():
            yield from ((name, one) for one in ways)
        field_modules = FieldModules(self.project, self.attempt, self.converted)
        filled = factory_fields(self.converted)
        layers = held_layers(self.project, self.converted)

        def read(name: str) -> tuple[list[tuple[str, Doubt]], Arguments]:
            module = self.project.modules[name]
            places = list(places_of(module, self.explicit))
            found = [
                *self._named(module, places),
                *self._asked_inside(module),
                *factory_reads(filled, module, places),
                *layer_field_reads(layers, module),
            ]
            return found, field_modules.read(module, places)

        paths = {name: module.path for name, module in self.project.modules.items()}
        for found, names in self.team.each(paths, read).values():
            yield from found
            field_modules.add(names)
        yield from apart["members"]
        yield from field_modules.doubts()

    # ---- ways to the class

    def _named(self, module: Module, places: list[Place]) -> Iterator[tuple[str, Doubt]]:
        none: frozenset[int] = frozenset()
        handled = self.attempt.lazy.get(module.path, none)
        handled |= self.attempt.explicit.get(module.path, none)
        for place in places:
            node = place.node
            if id(node) in handled or place.context in (Context.ANNOTATION, Context.BASE):
                continue
            line = getattr(node, "lineno", 1)
            failure = self.attempt.failures.get(module.path)
            named = class_named(self.project, node, place.scope)
            for word, member in _mentions(node):
                reason = failure.reason if failure else f"{word} is named here"
                # A name of an import may be another than the class's own.
                for cls in self.by_word.get(named.node.name if named else word, ()):
                    if _has(cls, member) and self._may_mean(cls, node, place.scope):
                        yield cls.name, Doubt(module.path, line, reason)

    def _may_mean(self, cls: ClassInfo, node: ast.AST, scope: Scope) -> bool:
        if not isinstance(node, ast.Name | ast.Attribute):
            return True
        named = class_named(self.project, node, scope)
        if named is not None:
            return named is cls
        symbol = self.project.resolve(node, scope)
        if symbol is not None:
            # An alias stands for what its assignment is edited to.
            return symbol == cls.name and not self.project.is_alias(node, scope)
        if isinstance(node, ast.Name):
            return scope.lookup(node.id) is None and bool(scope.module.stars)
        # The class may be an attribute of a class itself.
        is_nested = cls.name.rpartition(".")[0] not in (cls.module.name, "")
        return is_nested or not is_self(node.value)

    # ---- what is between explicit classes

    def _read(self) -> Iterator[tuple[str, Doubt]]:
        """Explicit classes that read what code around them holds: it is in Linen's style."""
        known: dict[int, Doubt | None] = {}
        builders = self.attempt.decisions.lazy_factories
        read = read_by(self.project, self.converted, self.attempt.texts, builders)
        for reader, module, node in read:
            if id(node) not in known:
                known[id(node)] = self._doubt_of(module, node)
            doubt = known[id(node)]
            if doubt is not None:
                yield reader, doubt

    def _doubt_of(self, module: Module, node: ast.AST) -> Doubt | None:
        """Why an explicit class must not read a definition."""
        if id(node) in self.explicit:
            return None
        lazy = self.attempt.lazy.get(module.path, frozenset())
        edited = self.attempt.edited_nodes.get(module.path, frozenset())
        scope = Scope(module).around(node)
        for one in _runtime_nodes(node, edited):
            line = getattr(one, "lineno", 1)
            if id(one) in lazy and not self._is_dropped(module, one):
                return Doubt(module.path, line, "what it reads here keeps Linen's style")
            if hasattr(one, "lineno") and id(one) not in edited and self._is_linen(scope, one):
                return Doubt(module.path, line, "what it reads here stays lazy")
        return None

    def _is_dropped(self, module: Module, node: ast.AST) -> bool:
        return is_temporary(self.project, places_of(module, self.explicit), node)

    def _is_linen(self, scope: Scope, node: ast.AST) -> bool:
        if not isinstance(node, ast.Name | ast.Attribute):
            return False
        symbol = self.project.resolve(node, scope)
        return symbol is not None and is_linen(symbol) and not is_of_arrays(symbol)

    def _builders(self) -> Iterator[tuple[str, Doubt]]:
        """Functions that build for explicit classes, and that other code calls, too."""
        decisions = self.attempt.decisions
        functions = {one.symbol: one.users for one in decisions.factories}
        scopes = decisions.scope_functions
        functions |= {
            name: frozenset(decisions.conversions) for name, one in scopes.items() if not one.stays
        }
        if not functions:
            return
        for module in self.project.modules.values():
            for place in places_of(module, self.explicit):
                node = place.node
                if not isinstance(node, ast.Name | ast.Attribute):
                    continue
                symbol = self.project.resolve(node, place.scope)
                if symbol in functions:
                    doubt = Doubt(module.path, node.lineno, f"{symbol} is called here, too")
                    yield from ((user, doubt) for user in sorted(functions[symbol]))

    # ---- what a lazy form does not carry

    def _asked_inside(self, module: Module) -> Iterator[tuple[str, Doubt]]:
        for node, word in asking_inside(self.project).get(module.name, ()):
            key = self.graph.at(module.path, getattr(node, "lineno", 0))
            if key is None:
                continue
            reached = self.graph.around(key)
            doubt = Doubt(module.path, getattr(node, "lineno", 1), f"{word} looks into modules")
            for cls in self.converted:
                if self.graph.at(cls.module.path, cls.node.lineno) in reached:
                    yield cls.name, doubt

    def _read_inside(self) -> dict[str, list[Read]]:
        """Attributes of bound modules that code may read, by name."""
        linen = self.project.linen
        lazy = [linen[one] for one in linen.keys() - self.attempt.decisions.conversions.keys()]
        found: dict[str, list[Read]] = {}
        for one in set(reads(self.project, self.graph, lazy, self.explicit)):
            found.setdefault(one.word, []).append(one)
        return {word: sorted(every, key=_place) for word, every in found.items()}

    def _unsupported_reads(
        self, cls: ClassInfo, within: Mapping[str, list[Read]]
    ) -> Iterator[Read]:
        """Reads inside of modules of a class that its explicit form does not carry."""
        names = method_attributes(cls) | _private(cls)
        met = {
            name: [one for one in within[name] if one.may_mean(cls)]
            for name in sorted(names & within.keys())
        }
        if not any(met.values()):
            return
        plain = plain_members(self.project, cls)
        own = own_names(self.attempt.texts, cls)
        sized = any(map(_is_hidden, self.attempt.decisions.conversions[cls.name].new_arguments))
        for name, every in met.items():
            for one in every:
                if sized or name not in own or not (one.is_supported or name in plain):
                    yield one
                    break

    def _starting(self, methods: frozenset[str]) -> dict[str, list[frozenset[str] | None]]:
        """Those of the methods that are named where variables may be made: in what stays lazy, and around
        calls of ``init`` that say which method; with the classes that are meant, where that is known."""
        found: dict[str, list[frozenset[str] | None]] = {}
        linen, converted = self.project.linen, self.attempt.decisions.conversions
        for name in self._builders_of_lazy() | self._takers_of_lazy():
            keys = keys_of_data(linen[name].node)
            for node in walk(linen[name].node):
                if name in converted and isinstance(node, ast.Attribute) and is_self(node.value):
                    continue  # the module itself, which is explicit
                for word in methods & {*words_of(node)} if id(node) not in keys else ():
                    owners = owners_of(self.project, linen[name].module, node)
                    found.setdefault(word, []).append(owners)
        for word in methods & said_around_starts(self.project):
            found.setdefault(word, []).append(None)
        return found

    def _builders_of_lazy(self) -> frozenset[str]:
        """Classes that build lazy forms of explicit ones: lazy classes, and where only calls tell sizes."""
        decisions = self.attempt.decisions
        explicit = (
            name
            for name in decisions.conversions
            for site in decisions.sizes[name].sites.values()
            if site.is_lazy and site.kind is not SiteKind.LAYER
        )
        return frozenset((*(self.project.linen.keys() - decisions.conversions.keys()), *explicit))

    def _takers_of_lazy(self) -> frozenset[str]:
        """Explicit classes that call lazy modules which code gives them, or may give out of sight."""
        attempt = self.attempt
        unseen = (one for one in attempt.values if attempt.modules_in.get(one))
        takers = {*attempt.taking, *unseen} & attempt.decisions.conversions.keys()
        return (
            frozenset() if attempt.module_fields is None else attempt.module_fields.takers(takers)
        )

    def _may_start(self, cls: ClassInfo, owners: frozenset[str] | None) -> bool:
        linen = self.project.linen
        return owners is None or any(cls in linen[one].mro for one in owners)

    def _members(self) -> Iterator[tuple[str, Doubt]]:
        """Classes with members that are used where a lazy form lacks them."""
        within, words = self._read_inside(), words_read(self.project)
        methods = {cls.name: methods_of(self.project, cls) for cls in self.converted}
        starting = self._starting(frozenset().union(*methods.values()))
        links = links_of(self.project)
        lazy = self._builders_of_lazy()
        for cls in self.converted:
            at = Doubt(cls.module.path, cls.node.lineno, "")
            inside = any(cls.name in links.builds.get(one, ()) for one in lazy)
            for method in sorted(methods[cls.name] & starting.keys()):
                if not any(self._may_start(cls, one) for one in starting[method]):
                    continue
                yield cls.name, replace(at, reason=f"{method} may make variables in other code")
            for method, name in called_parameters(self.project, links, cls) if inside else ():
                yield cls.name, replace(at, reason=f"{method} may be given a lazy module: {name}")
            for method in sorted(unbound_methods(self.project, cls)):
                if method == "__call__" or is_special(method) or method in words:
                    why = f"{method} may be called on a module without variables"
                    yield cls.name, replace(at, reason=why)
            for method, node in special_methods(cls).items():
                if any(word in self.by_word for one in walk(node) for word, _ in _mentions(one)):
                    yield cls.name, replace(at, reason=f"{method} names a class of modules")
            for name in sorted(cls.post_init_attributes & words):
                why = f"__post_init__ sets {name}, which may be read of a module without variables"
                yield cls.name, replace(at, reason=why)
            for read in self._unsupported_reads(cls, within):
                why = f"the submodule {read.word} may be used here"
                yield cls.name, Doubt(read.path, read.line, why)


def _runtime_nodes(node: ast.AST, edited_nodes: frozenset[int]) -> Iterator[ast.AST]:
    """All nodes but annotations and what edited calls call; of a dotted name only the whole."""
    todo = [node]
    while todo:
        one = todo.pop()
        yield one
        if isinstance(one, ast.Attribute) and name_parts(one):
            continue
        for name, value in ast.iter_fields(one):
            is_called = name == "func" and id(one) in edited_nodes
            if name not in ("annotation", "returns") and not is_called:
                children = value if isinstance(value, list) else [value]
                todo.extend(child for child in children if isinstance(child, ast.AST))


def _mentions(node: ast.AST) -> Iterator[tuple[str, str | None]]:
    """The names that a node loads, also by a string, and members of theirs: ``"models.Net.__call__"``."""
    match node:
        case ast.Constant(value=str() as text) if " " not in text and len(text) < _LONGEST:
            *above, last = text.replace(":", ".").split(".")
            if above:
                yield last, None
                yield above[-1], last
            return
        case ast.Call(func=called, keywords=keywords) if last_name(called) == "multiple":
            yield from (
                (one.arg, None) for one in keywords if one.arg
            )  # ``patch.multiple(models, Net=Fake)``
    word = loaded_word(node)
    if word is not None:
        yield word, None


def _has(cls: ClassInfo, member: str | None) -> bool:
    """Whether a class has such a member; None stands for the class."""
    return member is None or member.startswith("__") or cls.has(member)


def _private(cls: ClassInfo) -> set[str]:
    """Methods that the lazy form of an explicit class finds on the explicit module alone."""
    return {name for name in cls.method_names if name.startswith("_") and not name.startswith("__")}


def _is_hidden(size: SizeArgument) -> bool:
    """Whether neither variables nor calls of parts show a size."""
    return size.fact is None and size.axis is None


def _place(read: Read) -> tuple[bool, str, int]:
    return read.is_supported, read.path, read.line
