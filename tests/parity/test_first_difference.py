"""Where programs part: the first operation that only Linen's computes, by module and line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from nnx_migrate.parity.checks.first_difference import first_difference

X = jnp.ones(3)


def model(
    scale: float = 2.0,
    shift: float = 1.0,
    dead: float = 3.0,
    gate: float = 4.0,
    *,
    swap: bool = False,
) -> Callable[[Any], Any]:
    """Three scopes, the second a loop; ``dead`` is computed and not used."""

    def run(x: Any) -> Any:
        with jax.named_scope("net"):
            with jax.named_scope("into"):
                x = x * scale
                x * dead
            x, y = layers(x)
            with jax.named_scope("head"):
                return jnp.sin(x) * y

    def layers(x: Any) -> Any:
        def body(carry: Any, _: None) -> tuple[Any, None]:
            x, y = carry[::-1] if swap else carry
            with jax.named_scope("layers"):
                x, y = x + shift, y * gate
            return ((y, x) if swap else (x, y)), None

        start = (x, jnp.zeros(3))
        (x, y), _ = jax.lax.scan(body, start[::-1] if swap else start, None, length=2)
        return (y, x) if swap else (x, y)

    return run


def text(function: Callable[[Any], Any]) -> str:
    return str(jax.jit(function).lower(X).as_text(debug_info=True))


@pytest.mark.parametrize(
    ("other", "place"),
    [
        (model(scale=2.5), "from net/into (test_first_difference.py:"),
        (model(shift=1.5), "from net/layers (test_first_difference.py:"),
        (model(gate=4.5), "from net/layers (test_first_difference.py:"),
        (model(scale=2.5, gate=4.5), "from net/into (test_first_difference.py:"),
        (lambda x: model()(x) + 1, "from (test_first_difference.py:"),
    ],
)
def test_the_first_operation_without_a_counterpart_is_told(
    other: Callable[[Any], Any], place: str
) -> None:
    assert first_difference(text(model()), text(other)).startswith(place)


@pytest.mark.parametrize("other", [model(), model(dead=5.0), model(swap=True)])
def test_what_is_the_same_by_rules_or_not_used_is_not_told(other: Callable[[Any], Any]) -> None:
    assert first_difference(text(model()), text(other)) == ""


def test_the_operation_and_its_type_are_told() -> None:
    found = first_difference(text(model()), text(model(scale=2.5)))
    assert found.endswith(" on: Linen has stablehlo.broadcast_in_dim to tensor<3xf32>")


def test_a_loop_in_a_gradient_has_its_module_too() -> None:
    def gradient(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return jax.grad(lambda x: jnp.sum(run(x)))

    found = first_difference(text(gradient(model())), text(gradient(model(gate=4.5))))
    assert found.startswith("from net/layers (")


def test_without_locations_nothing_is_told() -> None:
    assert first_difference("", text(model())) == ""


def test_an_operation_that_only_the_other_has_is_told_where_it_stands():
    def bounded(x: Any) -> Any:
        with jax.named_scope("net"):
            with jax.named_scope("into"):
                x = jnp.where(x > 9, 0, x)
            with jax.named_scope("head"):
                return jnp.sin(x)

    def plain(x: Any) -> Any:
        with jax.named_scope("net"), jax.named_scope("head"):
            return jnp.sin(x)

    found = first_difference(text(plain), text(bounded))
    assert found.startswith("from net/head (test_first_difference.py:")
    assert " from net/into (test_first_difference.py:" in found.partition(", NNX ")[2]


def stack(*, turned: bool = True, bounded: bool = False) -> Callable[[Any], Any]:
    """The gradient of a loop over stacked weights, which keeps what the way back needs."""

    def run(x: Any) -> Any:
        def body(x: Any, weight: Any) -> tuple[Any, None]:
            with jax.named_scope("layers"):
                with jax.named_scope("into"):
                    x = x * weight
                with jax.named_scope("turn"):
                    x = jnp.sin(x) if turned else x
                with jax.named_scope("out"):
                    x = jnp.tanh(x)
                return (jnp.where(x > 9, 0, x) if bounded else x), None

        with jax.named_scope("net"):
            return jnp.sum(jax.lax.scan(body, x, jnp.arange(6.0).reshape(2, 3))[0])

    return jax.grad(run)


def test_in_a_loop_that_keeps_something_else_the_operation_is_told_not_the_loop():
    found = first_difference(text(stack()), text(stack(turned=False)))
    assert found.startswith("from net/layers/turn (test_first_difference.py:")


def test_what_only_the_body_of_the_other_loop_has_is_told_before_the_loop():
    found = first_difference(text(stack()), text(stack(bounded=True)))
    assert found.startswith("from layers (test_first_difference.py:")
    assert " on: only NNX has " in found
    assert re.search(
        r" on: Linen has stablehlo\.while to (tensor<\w+>, ){2}tensor<\w+> and \d+ more$", found
    )


def init(*, bias: float = 0.0, scale: float = 1.0) -> Callable[[Any], Any]:
    def run(x: Any) -> dict[str, Any]:
        kernels = {f"params/{name}/kernel": jnp.sin(x * scale) for name in ("a", "b", "c")}
        return {**kernels, "params/a/bias": x + bias}

    return run


def test_results_that_differ_where_most_do_not_are_named():
    found = first_difference(text(init()), text(init(bias=1.5)))
    assert found.startswith("of params/a/bias, from (test_first_difference.py:")


def test_results_of_which_most_differ_are_not_named():
    assert first_difference(text(init()), text(init(scale=2.5))).startswith(
        "from (test_first_difference.py:"
    )


def test_what_only_the_other_program_has_is_told():
    def plain(x: Any) -> Any:
        return x, jnp.sin(x)

    found = first_difference(text(plain), text(lambda x: (x, jnp.sin(x) + 1)))
    assert found.startswith("from (test_first_difference.py:")
    assert " on: only NNX has stablehlo.broadcast_in_dim to tensor<3xf32>" in found


def test_an_argument_that_the_other_program_has_no_use_for_is_no_operation():
    def text_of(uses: bool, scale: float) -> str:
        def run(parts: dict[str, Any]) -> Any:
            x = jnp.sin(parts["b"])
            return (x * parts["a"] if uses else x) * jnp.cos(parts["c"]) * scale

        given = dict.fromkeys("abc", X)
        return str(jax.jit(run).lower(given).as_text(debug_info=True))

    found = first_difference(text_of(True, 2.0), text_of(False, 2.0))
    assert " on: Linen has stablehlo.multiply to tensor<3xf32>" in found
