"""A size that inference answers is the size Linen traces, whatever rank the inputs have."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes import ClassSizes, analyse
from nnx_migrate.source.project import Project, parse

AXES = st.integers(-3, 3)
DIMS = st.integers(1, 5)
INPUTS = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@st.composite
def statements(draw: st.DrawFn) -> str:
    """One line that changes the array ``x``; it may not fit the rank that ``x`` has."""
    width, axis, other = draw(DIMS), draw(AXES), draw(AXES)
    part = draw(st.sampled_from(["0", "-1", ":2", "1:", ":", "None", "...", "jnp.arange(2) * 0"]))
    rest = draw(st.sampled_from([":", "0", "None", ":1", "..."]))
    return draw(
        st.sampled_from(
            [
                f"x = nn.Dense({width})(x)",
                f"x = nn.Dense({width})(x)",
                f"x = x + nn.Dense({width})(x)",
                f"x = x[{part}]",
                f"x = x[:, {part}]",
                f"x = x[{rest}, {part}]",
                f"x = x[:, {rest}, {part}]",
                f"x = x.mean({axis})",
                f"x = x.sum(axis=({axis}, {other}))",
                f"x = jnp.max(x, axis={axis}, keepdims=True)",
                f"x = jnp.linalg.norm(x, axis={axis}, keepdims=True)",
                f"x = jnp.linalg.norm(x, None, {axis})",
                f"x = jnp.swapaxes(x, {axis}, {other})",
                f"x = jnp.moveaxis(x, {axis}, {other})",
                f"x = jnp.expand_dims(x, {axis})",
                f"x = jnp.squeeze(x[:, None], {axis})",
                f"x = jnp.concatenate([x, x], axis={axis})",
                f"x = jnp.concatenate([nn.Dense({width})(x), x], axis={axis})",
                f"x = jnp.stack([x, x, x], axis={axis})",
                f"x = jnp.split(jnp.concatenate([x, x], {axis}), 2, axis={axis})[0]",
                f"x = jnp.repeat(x, 2, axis={axis})",
                f"x = jnp.take(x, jnp.arange(2) * 0, axis={axis})",
                f"x = x * y[:, {part}]",
                "x = x + y",
                "x = x @ y",
                "x = x[..., None] * y",
                "x = x.reshape(x.shape[0], -1)",
                "x = x.reshape(x.shape + (1,))",
                "x = x.T",
                "x = x.transpose((0, 2, 1))",
                "x = jnp.einsum('bij->bji', x)",
                "x = jnp.einsum('...i->...', x)",
                "x = jax.vmap(lambda z: z.sum(0))(x)",
                "x = jax.vmap(lambda z: z[0], in_axes=1, out_axes=1)(x)",
                "a, b = x.shape",
                "x = x * jnp.ones(x.shape[-1:])",
                "a, b, c = x.shape",
                "x = nn.LayerNorm()(x)",
            ]
        )
    )


def namespace(nn: Any) -> dict[str, Any]:
    return {"nn": nn, "jax": jax, "jnp": jnp, "__name__": "generated"}


class Dense:
    """What nn.Dense does to a shape."""

    def __init__(self, features: int) -> None:
        self.features = features

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.zeros((*x.shape[:-1], self.features)) + 0 * x[..., :1]


STAND_IN = SimpleNamespace(Dense=Dense, LayerNorm=lambda: lambda x: x + 0 * x[..., :1])


def fits(line: str, shapes: dict[str, Any]) -> Any:
    """The shape of ``x`` after the line; None when the line cannot run."""

    def run(values: dict[str, Any]) -> Any:
        names = {**namespace(STAND_IN), **values}
        exec(line, names)  # noqa: S102
        return names["x"] + 0.0

    try:
        return jax.eval_shape(run, shapes)
    except (TypeError, ValueError, IndexError, AssertionError, ZeroDivisionError):
        return None


@st.composite
def networks(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A class of lines that run, and the inputs they run on."""
    given_ = {name: jax.ShapeDtypeStruct(draw(INPUTS), "float32") for name in ("x", "y")}
    shapes, lines = dict(given_), []
    for line in draw(st.lists(statements(), min_size=3, max_size=10)):
        after = fits(line, shapes)
        if after is not None and after.ndim <= 5 and 0 < after.size < 10_000:
            shapes["x"] = after
            lines.append(line)
    if shapes["x"].ndim:
        lines.append("x = nn.Dense(3)(x)")
    body = "\n".join(f"        {line}" for line in [*lines, "return x"])
    header = "import flax.linen as nn\nimport jax\nimport jax.numpy as jnp\n\n\n"
    text = (
        f"{header}class Model(nn.Module):\n    @nn.compact\n    def __call__(self, x, y):\n{body}\n"
    )
    return text, given_


def traced(text: str, inputs: dict[str, Any]) -> dict[str, int]:
    """``in_features`` of every Dense that Linen makes, by scope name."""
    names = namespace(linen)
    exec(compile(text, "generated.py", "exec", dont_inherit=True), names)  # noqa: S102
    module: linen.Module = names["Model"]()
    variables = jax.eval_shape(module.init, jax.random.key(0), inputs["x"], inputs["y"])
    params = variables.get("params", {})
    return {name: made["kernel"].shape[0] for name, made in params.items() if "kernel" in made}


def value_of(argument: SizeArgument, inputs: dict[str, Any]) -> Any:
    """What a size argument read off an input is; None for one that the caller must know."""
    if argument.argument is None:
        return None
    arrays = {name: np.empty(one.shape) for name, one in inputs.items()}
    shape = np.shape(eval(argument.argument, arrays))
    return shape if argument.axis is None else shape[argument.axis]


def answers(found: ClassSizes, inputs: dict[str, Any], **names: Any) -> list[int | None]:
    """``in_features`` of every Dense in the order of the code; None where none is given."""
    values = names | {one.name: value_of(one, inputs) for one in found.new_arguments}
    sites = [site for site in found.sites.values() if site.class_name == "Dense"]
    sites.sort(key=lambda one: (one.call.lineno, one.call.col_offset))
    return [_evaluated(site.sizes["in_features"], values) for site in sites]


def _evaluated(text: str, values: dict[str, Any]) -> Any:
    names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    if any(values.get(name, 0) is None for name in names):
        return None
    return eval(text, dict(values))


def sizes_of(text: str) -> ClassSizes:
    return analyse(Project({"generated": parse("generated", "generated.py", text)}))[
        "generated.Model"
    ]


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(networks())
def test_sizes_are_those_of_the_trace_or_absent(network: tuple[str, dict[str, Any]]) -> None:
    text, inputs = network
    found = answers(sizes_of(text), inputs)
    true = traced(text, inputs)
    assert len(found) == len(true)
    for index, answer in enumerate(found):
        assert answer in (None, true[f"Dense_{index}"]), (index, text, inputs)


@pytest.mark.parametrize(
    ("line", "shape", "expected"),
    [
        ("x = nn.Dense(5)(x)", (2, 3), 5),
        ("a, b, c = x.shape; x = x.mean(1)", (2, 3, 4), 4),
        ("x = x.mean(1)", (2, 3), None),
    ],
)
def test_the_comparison_sees_answers(line: str, shape: tuple[int, ...], expected: int) -> None:
    body = f"        {line}\n        return nn.Dense(1)(x)\n"
    text = f"import flax.linen as nn\nclass Model(nn.Module):\n    @nn.compact\n    def __call__(self, x, y):\n{body}"
    inputs = {
        "x": jax.ShapeDtypeStruct(shape, "float32"),
        "y": jax.ShapeDtypeStruct((1,), "float32"),
    }
    assert answers(sizes_of(text), inputs)[-1] == expected
