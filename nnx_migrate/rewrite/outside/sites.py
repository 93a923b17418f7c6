"""One call of a Linen module method, read once: what it is called with, and what it becomes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from nnx_migrate.edit.calls import Argument, call, named
from nnx_migrate.edit.expressions import Expression, Written, expression, function
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.outside.sizes import Sizes, Unknown, sizes_of_call
from nnx_migrate.source.classes import ClassInfo

# Methods that only a Linen module has (the ledger's list, read from its documentation).
METHODS = frozenset(
    {"init", "init_with_output", "apply", "bind", "unbind", "tabulate", "lazy_init"}
)
RECIPES = {
    "init": "model = nnm.build(Model, ..., rngs=key) with its sizes has Linen's values;"
    " nnm.variables_of(model, x) is Linen's nested dict",
    "apply": "nnm.apply(model, variables, ...) takes Linen's arguments, nnm.apply_fn(model) is it"
    " as a value; or nnx.split once and nnx.merge inside jax.jit",
    "init_with_output": "build the module with rngs, then call it",
    "bind": "nnm.bind(model, variables) is a module that holds them; or call the module directly",
    "unbind": "nnx.split(model)",
    "tabulate": "nnx.tabulate(model, *inputs)",
    "lazy_init": "nnx.eval_shape(lambda: Model(..., rngs=nnx.Rngs(0)))",
}
# Keyword arguments of ``apply`` and ``init`` that do not go to the method.
_APPLY_OWN = frozenset({"rngs", "method", "mutable", "capture_intermediates"})


@dataclass(frozen=True)
class Site:
    """``receiver.init(...)`` or ``receiver.apply(...)`` of a converted class."""

    call: ast.Call
    cls: ClassInfo
    resolve: Callable[[ast.expr], str | None]
    wanted: tuple[SizeArgument, ...]

    @property
    def attribute(self) -> ast.Attribute:
        """``receiver.method``."""
        assert isinstance(self.call.func, ast.Attribute)
        return self.call.func

    @property
    def kind(self) -> str:
        """Name of the Linen method."""
        return self.attribute.attr

    def keyword(self, name: str) -> ast.expr | None:
        """A keyword argument."""
        found = (one.value for one in self.call.keywords if one.arg == name)
        return next(found, None)

    def check(self) -> None:
        """Refuse the forms that are not carried over.

        Raises:
          Unknown: says why.
        """
        if self.kind not in ("init", "apply"):
            raise Unknown(f"{self.kind} is not rewritten")
        if self.keyword("capture_intermediates") is not None:
            raise Unknown("capture_intermediates is not rewritten")
        if self.kind == "apply":
            if not self.call.args or isinstance(self.call.args[0], ast.Starred):
                raise Unknown("the variables are not the first argument")
            return
        self.key()
        for name in ("method", "mutable"):
            if self.keyword(name) is not None:
                raise Unknown(f"init with {name}= makes only a part of the variables")
        if any(one.arg is None for one in self.call.keywords):
            raise Unknown("what **kwargs hold is not known")
        if any(isinstance(one, ast.Starred) for one in self.call.args):
            raise Unknown("what *args hold is not known")

    def key(self) -> ast.expr:
        """The key or keys that ``init`` is given.

        Raises:
          Unknown: there is none.
        """
        found = self.keyword("rngs") or (self.call.args[0] if self.call.args else None)
        if found is None:
            raise Unknown("init is given no key")
        return found

    def keywords_of_build(self, renderer: Renderer, sizes: Sizes) -> list[Argument]:
        """The keyword arguments that ``nnm.build`` gets beside the constructor's."""
        return [*arguments_of(sizes), named("rngs", renderer.render(self.key()))]

    def sizes(self) -> Sizes:
        """The sizes that the constructor needs.

        Raises:
          Unknown: a size does not show in this call.
        """
        return sizes_of_call(
            self.cls,
            self.wanted,
            self._method(),
            self._inputs(),
            self._input_keywords(),
            self.resolve,
        )

    def _inputs(self) -> list[ast.expr]:
        """Positional arguments that go to the method."""
        skip = 0 if self.kind == "init" and self.keyword("rngs") is not None else 1
        return self.call.args[skip:]

    def _input_keywords(self) -> list[ast.keyword]:
        return [one for one in self.call.keywords if one.arg not in _APPLY_OWN]

    def _method(self) -> str | None:
        """Name of the method called; None when it does not show."""
        given = self.keyword("method")
        if given is None or (isinstance(given, ast.Constant) and given.value is None):
            return "__call__"
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            return given.value
        if isinstance(given, ast.Attribute) and self.cls.find(given.attr):
            return given.attr
        return None


def arguments_of(sizes: Sizes) -> list[Argument]:
    """Sizes as keyword arguments."""
    return [named(name, expression(text)) for name, text in sizes.texts.items()]


@dataclass(frozen=True)
class TracedInit:
    """``model.init`` handed to ``jax.jit`` or ``jax.eval_shape`` together with its arguments."""

    cls: ClassInfo
    wanted: tuple[SizeArgument, ...]
    args: tuple[ast.expr, ...]
    keywords: tuple[ast.keyword, ...]

    def function(
        self, build: Callable[[list[Argument]], Expression], taken: frozenset[str]
    ) -> Expression:
        """A function of the same arguments that gives the variables.

        Args:
          build: the module's construction, given more keyword arguments.
          taken: names that the construction reads.

        Raises:
          Unknown: an argument has no name to give it, or a size does not show.
        """
        names, positional = self._names()
        if taken & {*names, "rngs"}:
            raise Unknown(f"the name {min(taken & {*names, 'rngs'})} means two things here")
        loads = [ast.Name(one, ast.Load()) for one in names]
        args: list[ast.expr] = list(loads[:positional])
        keywords = [
            ast.keyword(name, load)
            for name, load in zip(names[positional:], loads[positional:], strict=True)
        ]
        sizes = sizes_of_call(self.cls, self.wanted, "__call__", args, keywords, lambda _: None)
        built = build([*arguments_of(sizes), named("rngs", "rngs")])
        given: list[Argument | Written] = [*names[:positional]]
        given += [*(named(one, one) for one in names[positional:])]
        return function(["rngs", *names], call("nnm.variables_of", built, *given))

    def _names(self) -> tuple[list[str], int]:
        """Parameter names, and how many of them are passed by position."""
        method = self.cls.find("__call__")
        spec = method[1].args if method else None
        known = [one.arg for one in (*spec.posonlyargs, *spec.args)][1:] if spec else []
        inputs = self.args[1:]
        keywords = [one.arg for one in self.keywords]
        if not self.args or len(inputs) > len(known) or None in keywords:
            raise Unknown("the arguments of init do not show")
        if any(isinstance(one, ast.Starred) for one in self.args):
            raise Unknown("the arguments of init do not show")
        if {"method", "mutable", "rngs", "capture_intermediates"} & set(keywords):
            raise Unknown("init with such options is not rewritten")
        return [*known[: len(inputs)], *(one for one in keywords if one)], len(inputs)


def traced_init(
    attribute: ast.Attribute,
    parent: Callable[[ast.AST], ast.AST | None],
    cls: ClassInfo,
    wanted: tuple[SizeArgument, ...],
    resolve: Callable[[ast.expr], str | None],
) -> TracedInit | None:
    """Read ``jax.jit(model.init)(key, x)`` and ``jax.eval_shape(model.init, key, x)``."""
    above = parent(attribute)
    if attribute.attr != "init" or not isinstance(above, ast.Call):
        return None
    if not above.args or above.args[0] is not attribute:
        return None
    symbol = resolve(above.func)
    if symbol == "jax.eval_shape":
        return TracedInit(cls, wanted, tuple(above.args[1:]), tuple(above.keywords))
    outer = parent(above)
    plain = not any(one.arg in (None, "static_argnums") for one in above.keywords)
    if symbol == "jax.jit" and isinstance(outer, ast.Call) and outer.func is above and plain:
        return TracedInit(cls, wanted, tuple(outer.args), tuple(outer.keywords))
    return None
