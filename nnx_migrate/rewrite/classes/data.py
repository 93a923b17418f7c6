"""What converting one class needs to know and what it gives back."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TypeVar

from nnx_migrate.edit.data import EditError
from nnx_migrate.edit.fitting import Unrenderable
from nnx_migrate.edit.rendering import Replacement
from nnx_migrate.model import ClassMap, Confidence, SizeArgument
from nnx_migrate.sizes.result import ClassSizes, Site, SiteKind


@dataclass(frozen=True)
class ConversionContext:
    """What is decided about the other classes of the project.

    Attributes:
      explicit_classes: qualified names of the Linen classes that become NNX classes.
      new_arguments: the size arguments that each converted class gains.
      factories: qualified names of classes that are used as values of fields or in partials; their
        width is asked at run time, so they get an ``out_features`` attribute.
      lazy: qualified names of the classes that become lazy. What is in neither set stays Linen, and no
        converted class builds it.
      lifted_classes: qualified names of those converted classes that hold lazy submodules and that another one
        lifts or makes a partial of: what it builds so is lazy (``nn.remat(lazy(Block))``).
      per_call_fields: fields of a converted class that may be set anew for every call.
      makes_call_variables: whether every call of a converted class makes a variable that only it can make.
      holds_lazy: whether a converted class holds lazy submodules, itself or in others.
      sizes_of: the sizes of a class of the project.
      scope_function: what becomes of a function that builds submodules for its callers.
    """

    explicit_classes: AbstractSet[str] = frozenset()
    new_arguments: Mapping[str, tuple[SizeArgument, ...]] = field(default_factory=dict)
    factories: AbstractSet[str] = frozenset()
    lazy: AbstractSet[str] = frozenset()
    lifted_classes: AbstractSet[str] = frozenset()
    per_call_fields: Callable[[str], frozenset[str]] = lambda _: frozenset()
    makes_call_variables: Callable[[str], bool] = lambda _: False
    holds_lazy: Callable[[str], bool] = lambda _: False
    sizes_of: Callable[[str], ClassSizes | None] = lambda _: None
    scope_function: Callable[[str], ConvertedFunction | ClassRefusal | None] = lambda _: None

    def is_lazy_value(self, symbol: str | None) -> bool:
        """Whether what is built through a value of that class is lazy."""
        return symbol is not None and (symbol in self.lazy or symbol in self.lifted_classes)

    def is_lazy(self, site: Site) -> bool:
        """Whether what a constructor call builds takes its sizes in its first call."""
        return site.is_lazy or self._calls_lazy(site)

    def _calls_lazy(self, site: Site) -> bool:
        """Whether a constructor call is of a lazy class: by its name, or of a value that stands for one."""
        is_value = site.kind is SiteKind.FACTORY
        return self.is_lazy_value(site.symbol) if is_value else site.symbol in self.lazy

    def is_lazy_inside(self, site: Site) -> bool:
        """Whether what a constructor call builds has variables that only a call makes."""
        symbol = site.symbol
        below = symbol is not None and (symbol in self.lazy or self.holds_lazy(symbol))
        return self.is_lazy(site) or below

    def is_lazy_form(self, site: Site) -> bool:
        """Whether a constructor call builds by ``lazy(...)`` what is explicit."""
        return site.is_lazy and site.kind is not SiteKind.LAYER and not self._calls_lazy(site)


@dataclass(frozen=True)
class ConvertedClass:
    """A converted class: the edit of its class statement, for a renderer of the module."""

    edits: Mapping[int, Replacement]
    imports: frozenset[str]  # "nnx", "nnm", "jax", ...: names the new text needs imported
    class_map: ClassMap
    new_arguments: tuple[SizeArgument, ...] = ()
    confidence: Confidence = Confidence.EXACT
    review: tuple[tuple[ast.AST, str], ...] = ()  # why a person should look, and where
    notes: tuple[tuple[ast.AST, str], ...] = ()  # remarks of rules, and where
    per_call_fields: frozenset[str] = frozenset()  # that the constructor only stores
    makes_call_variables: bool = (
        False  # whether every call makes a variable that only the call can make
    )
    holds_lazy: bool = False  # whether it holds lazy submodules, itself or in others
    staying: tuple[ast.AST, ...] = ()  # Linen's names in it that lazy submodules need


@dataclass(frozen=True)
class Wants:
    """What a constructor would have to know to build a class that is refused without.

    Attributes:
      shapes: parameters of the call whose whole shape would help.
      facts: parameters of which it would help to know what the initial call has for them.
      lazy: ids of calls that build submodules whose first calls might make them instead.
    """

    shapes: frozenset[str] = frozenset()
    facts: frozenset[str] = frozenset()
    lazy: frozenset[int] = frozenset()

    def __or__(self, other: Wants) -> Wants:
        """Both."""
        lazy = self.lazy | other.lazy
        return Wants(self.shapes | other.shapes, self.facts | other.facts, lazy)


@dataclass(frozen=True)
class ConvertedFunction:
    """A converted scope function: the edit of its statement, and what its builder takes.

    Attributes:
      takes: the parameters of the function that its builder has too.
      counts: whether it asks the name counter of its caller.
      stays: whether the function stays beside its new form, for classes that stay Linen.
    """

    symbol: str
    edits: Mapping[int, Replacement]
    imports: frozenset[str]
    takes: tuple[str, ...]
    counts: bool
    stays: bool = False
    notes: tuple[tuple[ast.AST, str], ...] = ()
    review: tuple[tuple[ast.AST, str], ...] = ()


@dataclass(frozen=True)
class ClassRefusal:
    """Why a class is left as it is."""

    node: ast.AST
    reason: str
    recipe: str
    rule: str
    wants: Wants = Wants()


class ClassRefused(Exception):
    """Raised inside a conversion to leave the whole class untouched."""

    def __init__(
        self,
        node: ast.AST,
        reason: str,
        recipe: str,
        rule: str,
        wants: Wants = Wants(),
    ) -> None:
        """Refuse at ``node``."""
        super().__init__(reason)
        self.refusal = ClassRefusal(node, reason, recipe, rule, wants)


# ---- a conversion that gives its result, or says why there is none

T = TypeVar("T")


def or_refusal(convert: Callable[[], T], rule: str, node: ast.AST) -> T | ClassRefusal:
    """What ``convert`` returns, or the refusal it raised; ``rule`` is that of a failed edit."""
    try:
        return convert()
    except ClassRefused as refused:
        return refused.refusal
    except Unrenderable as error:
        recipe = "write the expression outside of the f-string"
        return ClassRefusal(error.node, error.reason, recipe, rule)
    except EditError as error:
        return ClassRefusal(node, f"its file cannot be edited: {error}", "rewrite the file", rule)
