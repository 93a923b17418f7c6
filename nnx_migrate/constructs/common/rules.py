"""What a construct's file holds: the names that it claims, and what becomes of each.

Rules never import ``jax`` or ``flax``: facts about them (which NNX name is the same object, which
attributes a layer keeps) are data that tests compare with the installed packages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nnx_migrate.constructs.common.base import Code, Context, LayerCall, Refusal, linen
from nnx_migrate.constructs.common.shapes import Shape, opaque
from nnx_migrate.edit.calls import Argument
from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.expressions import Expression, dotted_node, string

_NNX = frozenset({"nnx"})
_NNM = frozenset({"nnm"})


@dataclass(frozen=True)
class Example:
    """A use of a Linen name before and after."""

    before: str
    after: str


def same_names(*fields: str) -> dict[str, str]:
    """Fields that the NNX layer keeps under their own names, for ``Layer.attributes``."""
    return {name: name for name in fields}


@dataclass(frozen=True)
class Layer:
    """A built-in Linen layer: its fields, what a call of it shows, and how it reads in NNX.

    Args:
      target: the class that it becomes.
      fields: Linen's, in Linen's order; ``required_fields`` are those without a default.
      build: the conversion of a constructor call (``native``, ``own``, or the construct's own).
      shape: the sizes that a call shows and what comes out; ``methods`` the same for others.
      sizes: keys of the sizes that the NNX layer is built with, ``optional_sizes`` of those that are
        passed on when they are known.
      positional: fields that the native layer takes by position after its sizes.
      keywords: fields that have another name in the native constructor.
      functions: fields whose functions need an adapter unless None.
      recipes: fields that have no counterpart unless they are left at their default, with recipe.
      has_factory: whether ``nnm.factory`` has a builder of Linen's signature under its name.
      annotation: the class that it becomes in annotations, if not ``target``.
      attributes: fields that the NNX layer keeps, and as what; None where it keeps all as they are.
      variables: names of its variables where they exist once it is built, all without a submodule.
      is_stateless: whether Linen makes no variable for it.
      has_statistics: whether it has running statistics beside its parameters.
      is_one_class: whether every call of it builds ``target`` itself, for ``isinstance``.
      holds_modules: whether it has no variables of its own and runs the modules it is given.
      only_calls: whether it does no more with these than to call them, outside of transformations.
      at_call: fields that a call takes too, with the same meaning.
      defers_init: whether its factory makes the variables in the first call where no size is given.
      size_inputs: inputs by the sizes that they show, where that is not the first input.
    """

    name: str
    target: str
    fields: tuple[str, ...]
    example: Example
    build: Callable[[Layer, LayerCall], Code | Refusal]
    shape: Shape = opaque
    methods: Mapping[str, Shape] = field(default_factory=dict)
    required_fields: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ("in_features",)
    optional_sizes: tuple[str, ...] = ()
    positional: tuple[str, ...] = ()
    keywords: Mapping[str, str] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    recipes: Mapping[str, str] = field(default_factory=dict)
    takes_rngs: bool = True
    has_factory: bool = True
    annotation: str = ""
    attributes: Mapping[str, str] | None = None
    variables: tuple[str, ...] = ()
    is_stateless: bool = False
    has_statistics: bool = False
    is_one_class: bool = False
    holds_modules: bool = False
    only_calls: bool = False
    at_call: tuple[str, ...] = ()
    defers_init: bool = False
    size_inputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def symbols(self) -> frozenset[str]:
        """The one name that it claims."""
        return linen(self.name)

    @property
    def symbol(self) -> str:
        """``flax.linen.Dense``."""
        return f"flax.linen.{self.name}"

    @property
    def imports(self) -> frozenset[str]:
        """The import that the target needs."""
        return import_of(self.target)

    def convert(self, call: LayerCall) -> Code | Refusal:
        """What becomes of a constructor call."""
        return self.build(self, call)

    def reference(self, symbol: str, context: Context) -> Code | Refusal:
        """The class used as a value: its factory; in an annotation: the class it becomes."""
        annotation = self.annotation or self.target
        if context is Context.BASE:
            return Refusal(
                f"a class that inherits from the built-in layer {self.name}",
                f"derive from `{annotation}` by hand: its constructor takes sizes and rngs",
            )
        if context is Context.ANNOTATION:
            return Code(dotted_node(annotation), import_of(annotation))
        return Code(self.factory, self.factory_imports)

    @property
    def factory(self) -> Expression:
        """What builds it from Linen's arguments, ``in_features`` and ``rngs``."""
        if self.has_factory:
            return dotted_node(f"nnm.factory.{self.name}")
        names = [Argument(string(one, '"')) for one in self.fields]
        return made_call("nnm.factory.of", Argument(dotted_node(self.target)), *names)

    @property
    def factory_imports(self) -> frozenset[str]:
        """The imports that the factory needs."""
        return _NNM if self.has_factory else _NNM | self.imports


def import_of(name: str) -> frozenset[str]:
    """Key of ``IMPORTS`` of a name in ``nnx`` or ``nnm``."""
    return _NNX if name.startswith("nnx.") else _NNM


@dataclass(frozen=True)
class NameRule:
    """Names that become another name wherever they are loaded; call arguments stay as they are.

    Attributes:
        layer: what the analysis knows of one that is called like a layer and is no module.
        is_same: whether it is the same function or type: it may change wherever it stands, also in code that
            keeps Linen's style.
    """

    name: str
    symbols: frozenset[str]
    example: Example
    reference: Callable[[str, Context], Code | Refusal]
    layer: Layer | None = None
    is_same: bool = False


@dataclass(frozen=True)
class CallRule:
    """Functions whose calls change more than the function's name."""

    name: str
    symbols: frozenset[str]
    example: Example
    convert: Callable[[LayerCall], Code | Refusal]
    reference: Callable[[str, Context], Code | Refusal]


@dataclass(frozen=True)
class RefusalRule:
    """Names that are not carried over, each with its manual recipe (symbol -> reason, recipe)."""

    name: str
    refusals: Mapping[str, Refusal]
    example: Example

    @property
    def symbols(self) -> frozenset[str]:
        """The names refused."""
        return frozenset(self.refusals)

    def reference(self, symbol: str, context: Context) -> Code | Refusal:
        """The refusal of ``symbol``."""
        return self.refusals[symbol]


Rule = Layer | NameRule | CallRule | RefusalRule


@dataclass(frozen=True)
class Construct:
    """All that a file says of one Linen construct.

    Args:
      doc: what becomes what, what differs, where that is documented, for which Flax versions.
      rules: one for each group of names that is treated alike.
      example: Linen code that uses it; ``Model`` is run in both forms, on ``inputs``.
      inputs: arguments of the call, as Python text.
      lazy: further Linen code, in which it is refused.
    """

    doc: str | None
    rules: tuple[Rule, ...]
    example: str = ""
    inputs: str = ""
    lazy: tuple[str, ...] = ()
