"""One call of a Linen module method, read once: what it is called with, and its NNX text."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.outside.sizes import Sizes, Unknown, sizes_of_call
from nnx_migrate.rewrite.render import Renderer
from nnx_migrate.source.classes import ClassInfo

# Methods that only a Linen module has (the ledger's list, read from its documentation).
METHODS = frozenset(
    {"init", "init_with_output", "apply", "bind", "unbind", "tabulate", "lazy_init"}
)
RECIPES = {
    "init": "build the module with its sizes and rngs=nnx.Rngs(key); nnm.variables_of(model) gives"
    " Linen's nested dict",
    "apply": "nnm.apply(model, variables, ...) takes Linen's arguments, nnm.apply_fn(model) is it"
    " as a value; or nnx.split once and nnx.merge inside jax.jit",
    "init_with_output": "build the module with rngs, then call it",
    "bind": "nnm.bind(model, variables) is a module that holds them; or call the module directly",
    "unbind": "nnx.split(model)",
    "tabulate": "nnx.tabulate(model, *inputs)",
    "lazy_init": "nnx.eval_shape(lambda: Model(..., rngs=nnx.Rngs(0)))",
}
_KEYS = frozenset({"jax.random.key", "jax.random.PRNGKey"})
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

    def rngs(self, renderer: Renderer) -> str:
        """Text of the ``nnx.Rngs`` to build from."""
        key = self.key()
        return f"{'nnx.Rngs' if self.needs_nnx else 'nnm.rngs'}({renderer.render(key)})"

    @property
    def needs_nnx(self) -> bool:
        """Whether the key is plainly one key, so that ``nnx.Rngs`` takes it."""
        key = self.key()
        return isinstance(key, ast.Call) and self.resolve(key.func) in _KEYS

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
