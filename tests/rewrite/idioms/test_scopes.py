"""Idioms 3 to 7 and 16: scopes and modules as values."""

from __future__ import annotations

import numpy as np

from tests.rewrite.running import lazy, refused, same_in_auto

X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)

PUSHED = """\
import flax.linen as nn


class Layer(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.tanh(nn.Dense(self.width, name="mix")(x))


class Stack(nn.Module):
    width: int
    depth: int

    @nn.compact
    def __call__(self, x):
        layers = self.scope.push("layers")
        for i in range(self.depth):
            x = Layer(self.width, parent=layers.push(str(i)))(x)
        return x
"""


def test_03_scopes_are_pushed_by_hand_for_paths_of_a_loop() -> None:
    assert "self.scope" in lazy(PUSHED, "Stack")
    assert set(same_in_auto(PUSHED, "Stack(6, 3)", X)["params"]["layers"]) == {"0", "1", "2"}


LEVELLESS = """\
import flax.linen as nn


class Inner(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width, name="mix")(x)


class Outer(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.relu(Inner(self.width, parent=self.scope, name="")(x))
"""


def test_04_a_child_adds_no_level_to_the_path() -> None:
    assert "self.scope" in lazy(LEVELLESS, "Outer")
    assert set(same_in_auto(LEVELLESS, "Outer(4)", X)["params"]) == {"mix"}


INTERCEPTED = """\
import flax.linen as nn


class LowRank(nn.Module):
    layer: nn.Dense
    rank: int

    def __post_init__(self):
        super().__post_init__()
        if self.scope is not None:
            nn.share_scope(self, self.layer)

    @nn.compact
    def __call__(self, x):
        init = nn.initializers.normal()
        down = self.param("down", init, (x.shape[-1], self.rank))
        up = self.param("up", init, (self.rank, self.layer.features))
        return self.layer(x) + x @ down @ up

    def __getattr__(self, name):
        return getattr(self.layer, name)


class Mlp(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(nn.relu(nn.Dense(self.width)(x)))


class Adapted(nn.Module):
    model: nn.Module
    rank: int

    @nn.compact
    def __call__(self, x):
        adapted = []

        def adapt(call, args, kwargs, context):
            layer = context.module
            if isinstance(layer, nn.Dense) and layer not in adapted:
                adapted.append(layer)
                return LowRank(layer, self.rank)(*args, **kwargs)
            return call(*args, **kwargs)

        with nn.intercept_methods(adapt):
            return self.model(x)
"""


def test_05_layers_are_swapped_by_an_interceptor_at_call_time() -> None:
    assert refused(INTERCEPTED, "Adapted")
    assert "__getattr__" in refused(INTERCEPTED, "LowRank")


SHARED = """\
import flax.linen as nn


class Projection(nn.Module):
    shape: tuple
    weight_name: str = "w"

    @nn.compact
    def __call__(self, x):
        weight = self.param(self.weight_name, nn.initializers.normal(), self.shape)
        return x @ weight


class Layer(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        inner = Projection((x.shape[-1], self.width), weight_name="kernel")
        nn.share_scope(self, inner)
        return nn.relu(inner(x))
"""


def test_06_a_child_shares_the_scope_and_a_field_names_its_parameter() -> None:
    assert "share_scope" in lazy(SHARED, "Layer")
    assert set(same_in_auto(SHARED, "Layer(4)", X)["params"]) == {"kernel"}


COPIED = """\
import flax.linen as nn


class Policy(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(nn.tanh(nn.Dense(self.width)(x)))


class Anchored(nn.Module):
    policy: nn.Module

    @nn.compact
    def __call__(self, x):
        anchor = self.policy.copy(name="anchor")
        return self.policy(x), anchor(x)


def model():
    return Anchored(Policy(4))
"""


def test_07_a_copy_of_a_submodule_has_parameters_of_its_own() -> None:
    assert "copy" in lazy(COPIED, "Anchored")
    assert set(same_in_auto(COPIED, "model()", X)["params"]) == {"policy", "anchor"}


UNBOUND = """\
import flax.linen as nn
import jax


class Step(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.tanh(nn.Dense(self.width)(x))


class Model(nn.Module):
    width: int
    steps: int

    def setup(self):
        self.step = Step(self.width)

    def __call__(self, x):
        x = self.step(x)
        module, variables = self.step.unbind()

        def body(x, _):
            return module.apply(variables, x), None

        return jax.lax.scan(body, x, None, length=self.steps)[0]
"""


def test_16_a_module_and_its_variables_are_taken_apart_for_a_raw_loop() -> None:
    assert "it calls unbind" in lazy(UNBOUND, "Model")
    same_in_auto(UNBOUND, "Model(6, 3)", X)
