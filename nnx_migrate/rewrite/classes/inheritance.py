"""What a class takes over from the Linen classes it inherits from."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from nnx_migrate.constructs.module_api import CARRIED, OWN_ONLY, RECIPES
from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.classes.data import ClassRefused, ConversionContext
from nnx_migrate.rewrite.classes.items import Item, ItemKind, own_nodes, receiver_of, self_call
from nnx_migrate.rewrite.classes.reading.attributes import Attribute, Kind, setup_attributes
from nnx_migrate.rewrite.classes.setup.variable_attributes import attributes_of
from nnx_migrate.rewrite.classes.uses.calls import Method, base_calls, calls_base
from nnx_migrate.rewrite.classes.uses.makings import base_items, making_of
from nnx_migrate.sizes.result import ClassSizes
from nnx_migrate.source.classes import ClassInfo, is_linen_class
from nnx_migrate.source.project import Project
from nnx_migrate.source.walking import walk

RULE = "inheritance"
_INTERFACE = frozenset((*RECIPES, *CARRIED, *OWN_ONLY, "variables"))  # of every Linen module
_PROTOCOLS = frozenset({"typing.Protocol", "typing_extensions.Protocol"})
_DATACLASSES = frozenset(
    {"dataclasses.dataclass", "flax.struct.dataclass", "attr.s", "attrs.define"}
)


@dataclass(frozen=True)
class BaseParts:
    """What the base classes bring.

    Attributes:
      delegates: ``__init__`` calls ``super().__init__`` because a base builds something.
      base_fields: fields that it passes on.
      needs_init: the class needs an ``__init__`` of its own.
      size_arguments: those of the base's constructor.
      size_values: what it is given for them where that is no argument of the same name.
      plain: attributes that the bases' ``setup`` gives something that it does not build.
      super_setup: ``super().setup()`` statements, which go.
    """

    delegates: bool = False
    needs_init: bool = True
    base_fields: frozenset[str] = frozenset()
    size_arguments: tuple[SizeArgument, ...] = ()
    size_values: Mapping[str, str] = field(default_factory=dict)
    attributes: tuple[Attribute, ...] = ()
    plain: frozenset[str] = frozenset()
    super_setup: tuple[ast.stmt, ...] = ()


def check_bases(project: Project, cls: ClassInfo) -> None:
    """The name of a base may be bound in several ways: ``nn`` is ``None`` where flax is missing.

    Raises:
      Refused: nobody knows what the class inherits.
    """
    for base, symbol in zip(cls.node.bases, cls.bases, strict=True):
        if symbol is None and project.meanings(base, cls.scope):
            raise ClassRefused(
                cls.node,
                f"its base {ast.unparse(base)} may mean something else, too",
                "bind the name in one place only",
                RULE,
            )


def inherited_by(
    project: Project, cls: ClassInfo, sizes: ClassSizes, context: ConversionContext
) -> BaseParts:
    """Work out the base classes.

    Raises:
      Refused: a base stays Linen, or what the bases build is only partly overridden.
    """
    _check_metaclass(cls)
    _check_plain_bases(project, cls)
    parents = [one for one in cls.parents if one.linen]
    calls = _super_setup(project, cls)
    if not parents:
        return BaseParts(super_setup=calls)
    for parent in parents:
        if parent.name not in context.explicit_classes:
            raise ClassRefused(
                cls.node, f"its base {parent.name} stays Linen", "convert it too", RULE
            )
    builders = [one for one in cls.mro[1:] if one.linen and _builds(project, one)]
    active = [one for one in builders if not _overridden(project, cls, one, bool(calls))]
    if not active:
        return BaseParts(attributes=_attributes(cls), super_setup=calls)
    is_part = any(_overrides_part(project, cls, one, bool(calls), context) for one in active)
    if len(active) != len(builders) or len(parents) > 1 or is_part:
        raise ClassRefused(
            cls.node,
            "it overrides a part of what its bases build, and keeps the rest",
            "override setup or the compact method whole, and call no other",
            RULE,
        )
    for one in active:
        _check_base_calls(cls, one, context)
    own_build = _builds(project, cls)
    own_fields = any(one.owner is cls for one in cls.fields)
    base = parents[0]
    size_values = sizes.base_arguments.get(base.name, {})
    return BaseParts(
        delegates=True,
        needs_init=own_build or own_fields or bool(size_values),
        base_fields=frozenset(one.name for one in base.fields),
        size_arguments=context.new_arguments.get(base.name, ()),
        size_values=size_values,
        attributes=_attributes(cls),
        plain=frozenset(_plain_attributes(active, context)),
        super_setup=calls,
    )


def _attributes(cls: ClassInfo) -> tuple[Attribute, ...]:
    """Attributes that the bases' ``setup`` assigns (what is a Param there is one here)."""
    found: list[Attribute] = []
    for one in cls.mro[1:]:
        method = one.methods.get("setup")
        if method is not None and one.linen:
            found += attributes_of(one, method, _plain_items(one, method))
    return tuple(found)


def _plain_attributes(bases: Iterable[ClassInfo], context: ConversionContext) -> Iterator[str]:
    for one in bases:
        setup = one.methods.get("setup")
        if setup is not None:
            found = setup_attributes(one, setup, base_items(one, context))
            yield from (attribute.name for attribute in found if attribute.kind is Kind.PLAIN)


def _plain_items(cls: ClassInfo, method: ast.FunctionDef) -> dict[int, Item]:
    receiver = receiver_of(method)
    kinds = {"param": ItemKind.PARAM, "variable": ItemKind.VARIABLE}
    found: dict[int, Item] = {}
    for node in own_nodes(method):
        name = self_call(node, receiver)
        if name in kinds and isinstance(node, ast.Call) and node.args:
            index = 0 if name == "param" else 1
            found[id(node)] = Item(kinds[name], node, name=node.args[index])
    return found


def _builds(project: Project, cls: ClassInfo) -> bool:
    """Whether the class itself has a ``setup``, a compact method, or one that draws keys."""
    return any(_is_builder(project, cls, *one) for one in cls.methods.items())


def _is_builder(project: Project, cls: ClassInfo, name: str, method: ast.FunctionDef) -> bool:
    """Whether ``__init__`` has something to make for a method: a stream, if it calls ``self.make_rng``."""
    receiver = receiver_of(method)
    return (
        name == "setup"
        or project.is_compact(cls, method)
        or any(self_call(node, receiver) == "make_rng" for node in own_nodes(method))
    )


def _overridden(project: Project, cls: ClassInfo, base: ClassInfo, calls_super: bool) -> bool:
    """Whether ``cls`` replaces everything that ``base`` builds."""
    return all(
        _replaces(project, cls, base, name, calls_super)
        for name, method in base.methods.items()
        if _is_builder(project, base, name, method)
    )


def _replaces(
    project: Project, cls: ClassInfo, base: ClassInfo, name: str, calls_super: bool
) -> bool:
    """Whether objects of ``cls`` never run the method ``name`` of ``base``."""
    found = cls.find(name)
    if found is None or found[0] is base or (name == "setup" and calls_super):
        return False
    return not any(calls_base(project, one, name, base) for one in (cls, found[0]))


def _overrides_part(
    project: Project, cls: ClassInfo, base: ClassInfo, calls_super: bool, context: ConversionContext
) -> bool:
    """Whether ``cls`` replaces a method that makes something in the ``__init__`` of ``base``, which it calls."""
    items = base_items(base, context)
    return any(
        _replaces(project, cls, base, name, calls_super)
        for name, method in base.methods.items()
        if name == "setup"
        or (project.is_compact(base, method) and making_of(Method(base, method), items))
    )


def _check_base_calls(cls: ClassInfo, base: ClassInfo, context: ConversionContext) -> None:
    """A base builds what its own methods call: others of a subclass may call more.

    Raises:
      Refused: a method of the class reads a part that its base builds under a condition of the base's calls.
    """
    setup = base.methods.get("setup")
    if setup is None:
        return
    items = base_items(base, context)
    parts = {
        one.name
        for one in attributes_of(base, setup, items)
        for node in walk(one.value)
        if id(node) in items and _is_conditional(items[id(node)])
    }
    for method in cls.methods.values():
        receiver = receiver_of(method)
        for node in walk(method) if parts else ():
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=attr) if (
                    name == receiver and attr in parts
                ):
                    raise ClassRefused(
                        node,
                        f"its base {base.name} calls self.{attr} under a condition, and builds it so",
                        "call it in the base alone, or build it in a setup of its own",
                        RULE,
                    )


def _is_conditional(item: Item) -> bool:
    return item.site is not None and item.site.condition is not None


def _super_setup(project: Project, cls: ClassInfo) -> tuple[ast.stmt, ...]:
    """``super().setup()`` as statements of ``setup``.

    Raises:
      Refused: one stands elsewhere, and NNX has no such method.
    """
    calls = {
        id(call): call
        for method in cls.methods.values()
        for call, name, named in base_calls(project, cls, method)
        if name == "setup" and named is None
    }
    setup = cls.methods.get("setup")
    found: list[ast.stmt] = []
    for statement in setup.body if setup is not None else ():
        if isinstance(statement, ast.Expr) and calls.pop(id(statement.value), None) is not None:
            found.append(statement)
    if calls:
        raise ClassRefused(
            next(iter(calls.values())),
            "it calls the setup of its base under a condition, or in another method",
            "call it in a statement of setup itself",
            RULE,
        )
    return tuple(found)


def brings_protocol(cls: ClassInfo) -> bool:
    """Whether a class inherits from a protocol that no module among its bases inherits from."""

    def has_protocol(one: ClassInfo) -> bool:
        return any(not _PROTOCOLS.isdisjoint(base.bases) for base in one.mro)

    return has_protocol(cls) and not any(one.linen and has_protocol(one) for one in cls.parents)


def _check_metaclass(cls: ClassInfo) -> None:
    """NNX's modules have a metaclass of their own, which goes with those of ``abc.ABC`` and of protocols."""
    for one in cls.mro:
        has_other = any(
            keyword.arg == "metaclass"
            and ast.unparse(keyword.value).rpartition(".")[2] != "ABCMeta"
            for keyword in one.node.keywords
        )
        if has_other:
            raise ClassRefused(
                cls.node,
                f"{one.name} has a metaclass that nnx.Module's does not go with",
                "inherit from abc.ABC instead",
                RULE,
            )


def _check_interface(cls: ClassInfo, base: ClassInfo, method: ast.FunctionDef) -> None:
    """A method of a plain base reads Linen's own members of the class as they are written there."""
    receiver = receiver_of(method)
    own = cls.field_names | cls.method_names
    for node in walk(method):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=read) if (
                name == receiver and read in _INTERFACE - own
            ):
                raise ClassRefused(
                    cls.node,
                    f"its base {base.name}, which is no Linen module, reads self.{read}",
                    f"make {base.name} a Linen module, or do so in the class itself",
                    RULE,
                )


def _is_dataclass(project: Project, cls: ClassInfo) -> bool:
    decorators = cls.node.decorator_list
    named = (one.func if isinstance(one, ast.Call) else one for one in decorators)
    return any(project.resolve(one, cls.scope) in _DATACLASSES for one in named)


def _check_plain_bases(project: Project, cls: ClassInfo) -> None:
    """A base that is no Linen module is not rewritten: what it builds, or sets up, would stay Linen's."""
    for base in cls.mro[1:]:
        if base.linen:
            continue
        if _is_dataclass(project, base):
            raise ClassRefused(
                cls.node,
                f"its base {base.name}, which is no Linen module, is a dataclass and has fields",
                f"make {base.name} a Linen module",
                RULE,
            )
        if "setup" in base.methods:
            raise ClassRefused(
                cls.node,
                f"its base {base.name}, which is no Linen module, has a setup",
                f"make {base.name} a Linen module, or set up in the class itself",
                RULE,
            )
        for method in base.methods.values():
            _check_interface(cls, base, method)
            scope = base.scope.enter(method)
            for node in own_nodes(method):
                symbol = project.resolve(node.func, scope) if isinstance(node, ast.Call) else None
                if symbol in project.linen or is_linen_class(symbol):
                    raise ClassRefused(
                        cls.node,
                        f"its base {base.name}, which is no Linen module, builds {symbol} for it",
                        f"make {base.name} a Linen module, or build it in the class itself",
                        RULE,
                    )
