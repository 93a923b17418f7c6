"""Submodules without a scope of their own: ``nn.share_scope`` and ``parent=self.scope``."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm
from tests.rewrite.running import compare, migrated, module_of, refused

X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)
SAME = ("identical", "equal_by_rules")

HEAD = "import flax.linen as nn\nimport jax\n\n\n"
NORMAL = "nn.initializers.normal()"


def same_start(source: str, model: str, sizes: dict[str, Any], inputs: tuple[Any, ...]) -> Any:
    """Check that one seed gives both sides the same variables, gradients included; the Linen ones."""
    with module_of("linen_side", source) as old, module_of("nnx_side", migrated(source)) as new:
        linen, key = eval(model, old.__dict__), jax.random.key(3)
        theirs = jax.jit(linen.init)(key, *inputs)
        name, _, rest = model.partition("(")
        given = eval(f"dict(args=({rest[:-1]}{',' if rest != ')' else ''}))", {})["args"]
        ours = nnm.build(getattr(new, name), *given, **sizes, rngs=key)
        found = jax.jit(
            lambda key: nnm.variables_of(nnm.build(getattr(new, name), *given, **sizes, rngs=key))
        )(key)
        jax.tree.map(np.testing.assert_array_equal, found, theirs)

        def slopes(apply: Any) -> Any:
            return jax.jit(jax.grad(lambda v: (apply(v, *inputs) ** 2).sum()))(theirs)

        grads = slopes(lambda v, *x: nnm.apply(ours, v, *x)), slopes(linen.apply)
        jax.tree.map(np.testing.assert_array_equal, *grads)
        assert all((one != 0).any() for one in jax.tree.leaves(grads[1]["params"]))
        return theirs


def checked(source: str, model: str, sizes: dict[str, Any], **options: Any) -> Any:
    """Parity, and the same start; gives Linen's variables."""
    report = compare(source, model, sizes, (X,), **options)
    assert report.verdict in SAME, report
    return same_start(source, model, sizes, (X,))


ORDERED = f"""{HEAD}class Layer(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        inner = nn.Dense(self.width)
        nn.share_scope(self, inner)
        first = self.param("first", {NORMAL}, (1, x.shape[-1]))
        y = inner(x * first)
        last = self.param("last", {NORMAL}, (1, self.width))
        return y * last


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(nn.tanh(Layer(5)(x)))
"""


def test_parameters_of_both_are_made_in_the_order_of_linen() -> None:
    found = checked(ORDERED, "Model()", {"in_features": 6})
    assert set(found["params"]["Layer_0"]) == {"first", "kernel", "bias", "last"}
    assert 'InScope("first")' in migrated(ORDERED).replace("'", '"')


ADAPTED = f"""{HEAD}class Adapted(nn.Module):
    features: int
    rank: int

    def setup(self):
        self.shift = self.param("shift", {NORMAL}, (1, self.features))
        self.child = nn.Dense(self.features)
        nn.share_scope(self, self.child)

    @nn.compact
    def __call__(self, x):
        down = self.param("down", {NORMAL}, (x.shape[-1], self.rank))
        up = self.param("up", {NORMAL}, (self.rank, self.features))
        y = self.child(x)
        scale = self.param("scale", {NORMAL}, (1, self.features))
        return (y + x @ down @ up) * scale + self.shift


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Adapted(5, 2)(x)
"""


def test_a_layer_of_setup_is_extended_at_its_path() -> None:
    found = checked(ADAPTED, "Model()", {"in_features": 6})
    own = {"shift", "down", "up", "kernel", "bias", "scale"}
    assert set(found["params"]["Adapted_0"]) == own


NESTED = f"""{HEAD}class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        gain = self.param("gain", {NORMAL}, (1, x.shape[-1]))
        h = nn.BatchNorm(use_running_average=False, name="norm")(nn.Dense(self.width)(x * gain))
        return nn.Dense(4)(nn.tanh(h))


class Model(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        block = Block(self.width)
        nn.share_scope(self, block)
        return nn.Dense(2, name="head")(block(x))
"""


def test_submodules_and_statistics_of_the_shared_one_stand_beside_those_of_the_class() -> None:
    report = compare(NESTED, "Model(5)", {"in_features": 6}, (X,), collections=("batch_stats",))
    assert report.verdict in SAME, report
    with module_of("linen_side", NESTED) as old, module_of("nnx_side", migrated(NESTED)) as new:
        key = jax.random.key(0)
        model = nnm.build(new.Model, 5, in_features=6, rngs=key)
        values = nnm.variables_of(model)
        assert set(values["params"]) == {"gain", "Dense_0", "norm", "Dense_1", "head"}
        assert set(values["batch_stats"]) == {"norm"}
        ours = nnm.apply(model, values, X, mutable=["batch_stats"])
        theirs = old.Model(5).apply(values, X, mutable=["batch_stats"])
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


LEVELLESS = f"""{HEAD}class Inner(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        gain = self.param("gain", {NORMAL}, (1, x.shape[-1]))
        return nn.Dense(self.width)(x * gain)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        first = self.param("first", {NORMAL}, (1, x.shape[-1]))
        y = Inner(4, parent=self.scope, name="")(x + first)
        return Inner(3)(y) * self.param("last", {NORMAL}, (1, 3))
"""


def test_a_submodule_given_the_scope_is_not_numbered() -> None:
    found = checked(LEVELLESS, "Model()", {"in_features": 6})
    assert set(found["params"]) == {"first", "gain", "Dense_0", "Inner_0", "last"}


SCANNED = f"""{HEAD}class Layer(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, _):
        inner = nn.Dense(self.width)
        nn.share_scope(self, inner)
        gain = self.param("gain", {NORMAL}, (1, self.width))
        return nn.tanh(inner(x)) * gain + x, None


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        layers = nn.scan(
            nn.remat(Layer), variable_axes={{"params": 0}}, split_rngs={{"params": True}}, length=3
        )
        return layers(6, name="layers")(x, None)[0]
"""


def test_a_class_with_a_shared_scope_is_stacked() -> None:
    found = checked(SCANNED, "Model()", {"in_features": 6})
    assert {name: one.shape for name, one in found["params"]["layers"].items()} == {
        "bias": (3, 6),
        "gain": (3, 1, 6),
        "kernel": (3, 6, 6),
    }


def outer(body: str, *, setup: str = "", extra: str = "", fields: str = "") -> str:
    """A class whose compact method is ``body``."""
    method = f"    def setup(self):\n{_indented(setup, 8)}\n" if setup else ""
    return (
        f"{HEAD}class Inner(nn.Module):\n    width: int = 4\n\n    @nn.compact\n"
        '    def __call__(self, x):\n        return x @ self.param("w", nn.initializers.normal(),'
        f" (6, self.width))\n\n\n{extra}class Model(nn.Module):\n    width: int = 4\n{fields}\n"
        f"{method}    @nn.compact\n    def __call__(self, x):\n{_indented(body, 8)}\n"
    )


def _indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line for line in text.strip().splitlines())


SHARE = "inner = Inner()\nnn.share_scope(self, inner)\n"
OWN = 'return x + self.param("a", nn.initializers.normal(), (1, 4))'
REFUSED = {
    "two others": ("a = Inner()\nb = nn.Dense(3)\nnn.share_scope(a, b)\nreturn b(a(x))", {}),
    "reversed": ("a = Inner()\nnn.share_scope(a, self)\nreturn a(x)", {}),
    "two of them": (
        f"{SHARE}other = nn.Dense(4)\nnn.share_scope(self, other)\nreturn other(inner(x))",
        {},
    ),
    "rebound": (f"{SHARE}y = inner(x)\ninner = nn.Dense(3)\nreturn inner(y)", {}),
    "aliased": (f"{SHARE}other = inner\nreturn other(x)", {}),
    "handed on": (f"{SHARE}return jax.jit(inner)(x)", {}),
    "called before": ("inner = Inner()\ny = inner(x)\nnn.share_scope(self, inner)\nreturn y", {}),
    "conditional": (
        "inner = Inner()\nif self.width > 3:\n    nn.share_scope(self, inner)\nreturn inner(x)",
        {},
    ),
    "built conditionally": (
        "inner = Inner() if self.width else Inner(4)\nnn.share_scope(self, inner)\nreturn inner(x)",
        {},
    ),
    "after a return": (f"if self.width > 9:\n    return x\n{SHARE}return inner(x)", {}),
    "in a loop": (
        "for i in range(2):\n    inner = Inner(6)\n    nn.share_scope(self, inner)\nreturn inner(x)",
        {},
    ),
    "a field": (
        "nn.share_scope(self, self.base)\nreturn self.base(x)",
        {"fields": "    base: nn.Module = None\n"},
    ),
    "of setup": (
        "nn.share_scope(self, self.inner)\nreturn self.inner(x)",
        {"setup": "self.inner = Inner()"},
    ),
    "handed on itself": (f"{SHARE}return print(self) or inner(x)", {}),
    "unclear order": (
        f"{SHARE}for _ in range(1):\n    x = inner(x)\n{OWN}",
        {},
    ),
    "never called": (f"{SHARE}return x", {}),
    "called sometimes": (f"{SHARE}if self.width > 3:\n    x = inner(x)\nreturn x", {}),
    "called in a function": (f"{SHARE}return jax.vmap(lambda y: inner(y))(x)", {}),
    "a field that may be a module": (
        "inner = Inner(self.base)\nnn.share_scope(self, inner)\nreturn inner(x)",
        {"fields": "    base: nn.Module = None\n"},
    ),
    "a field of any kind": (
        "inner = Inner(self.base)\nnn.share_scope(self, inner)\nreturn inner(x)",
        {"fields": "    base: object = 4\n"},
    ),
    "a field of the name": (f"{SHARE}return inner(x)", {"fields": "    w: int = 3\n"}),
    "a lazy one": (
        "inner = nn.SelfAttention(2, decode=True)\nnn.share_scope(self, inner)\nreturn inner(x)",
        {},
    ),
    "a scope in a loop": (
        "for i in range(2):\n    x = Inner(6, parent=self.scope)(x)\nreturn x",
        {},
    ),
    "a scope for a condition": (
        "return Inner(parent=self.scope)(x) if self.width > 3 else x",
        {},
    ),
    "another's scope": (
        "other = nn.Dense(6)\nreturn Inner(parent=other.scope)(other(x))",
        {},
    ),
    "a scope kept": ("scope = self.scope\nreturn Inner(parent=scope)(x)", {}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_certain_is_refused(case: str) -> None:
    body, options = REFUSED[case]
    assert "scope" in refused(outer(body, **options))


CHILDREN = {
    "sows": 'self.sow("intermediates", "x", x)\nreturn x * self.param("w", nn.initializers.ones, ())',
    "asks its name": 'return x * self.param(f"{self.name}", nn.initializers.ones, ())',
    "makes a variable": 'return x * self.variable("state", "w", lambda: 1.0).value',
    "draws": 'return x * jax.random.normal(self.make_rng("noise"))',
    "asks for variables": 'return x * 2 if self.has_variable("params", "a") else x',
    "hands itself on": "return help(self, x)",
    "shares again": "inner = Inner()\nnn.share_scope(self, inner)\nreturn inner(x)",
}


@pytest.mark.parametrize("case", CHILDREN)
def test_a_submodule_that_depends_on_its_place_is_refused(case: str) -> None:
    child = (
        "class Child(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        f"{_indented(CHILDREN[case], 8)}\n\n\n"
    )
    body = "inner = Child()\nnn.share_scope(self, inner)\nreturn inner(x)"
    assert "shares the scope" in refused(outer(body, extra=child)), case


def test_a_class_that_is_inherited_is_refused() -> None:
    heir = "\n\nclass Heir(Model):\n    @nn.compact\n    def __call__(self, x):\n        return Inner()(x)\n"
    assert "relatives" in refused(outer(f"{SHARE}return inner(x)") + heir)


def test_the_plain_case_is_rewritten() -> None:
    checked(outer(f"{SHARE}return inner(x)"), "Model()", {})


def test_a_name_that_two_have_is_an_error_as_in_linen() -> None:
    source = outer(
        f'{SHARE}a = self.param("w", nn.initializers.normal(), (1, 4))\nreturn inner(x) + a'
    )
    with module_of("linen_side", source) as old, module_of("nnx_side", migrated(source)) as new:
        with pytest.raises(Exception, match="w"):
            old.Model().init(jax.random.key(0), X)
        with pytest.raises(ValueError, match="shares its scope"):
            new.Model(rngs=nnx.Rngs(0))(X)
