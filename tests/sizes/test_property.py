"""What size inference says about random networks is what tracing Linen shows."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from flax import linen, nnx, traverse_util
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from nnx_migrate import nn as nnm
from nnx_migrate.linen import build
from nnx_migrate.model import ClassMap, Form
from nnx_migrate.parity.instantiation.calls import record_calls
from nnx_migrate.parity.instantiation.sizing import sizes_for
from nnx_migrate.sizes import analyse
from nnx_migrate.source.project import Project, parse
from tests.rewrite.projects import rewrite_in_form, texts

HEADER = "from typing import Any\n\nimport flax.linen as nn\nimport jax.numpy as jnp\n\n\n"
WIDTHS = st.integers(1, 6)


@st.composite
def statements(draw: st.DrawFn, depth: int = 0) -> list[str]:
    """A few statements that turn ``x``, an array of three axes, into another one."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        width, other = draw(WIDTHS), draw(WIDTHS)
        choices = [
            [f"x = nn.Dense({width})(x)"],
            ["x = x + nn.Dense(x.shape[-1])(nn.relu(x))"],
            [f"x = jnp.concatenate([x, nn.Dense({width})(x)], axis=-1)"],
            [f"x = jnp.concatenate([x, x], axis={draw(st.integers(-3, 2))})"],
            [f"x = x[..., :{width}]"],
            [f"x = x[..., -{width}:]"],
            [f"x = x[:, {draw(st.sampled_from(['0', ':2', '-1', '::2']))}]", *_THREE],
            ["x = x.reshape((x.shape[0], -1))", *_THREE],
            ["x = x.mean(axis=1)", *_THREE],
            ["x = jnp.swapaxes(x, 1, 2)"],
            ["x = nn.LayerNorm()(x)"],
            [f"y = Block({width})(x)", f"x = nn.Dense({other})(y)"],
            [f"x = nn.Dense({width * 2})(x)", "a, b = jnp.split(x, 2, axis=-1)", "x = a * b"],
            ["x = jnp.stack([x, x], axis=-1).sum(axis=1)"],
        ]
        lines += draw(st.sampled_from(choices))
        if depth < 2:
            inner = draw(statements(depth + 1))
            body = [f"    {line}" for line in inner]
            blocks = [
                [],
                [],
                ["if self.flag:", *body],
                ["if self.flag:", *body, "else:", f"    x = nn.Dense({width})(x)"],
                [f"for i in range({draw(st.integers(1, 3))}):", *body],
                ["for w in self.widths:", "    x = nn.Dense(w)(x)", *body],
                ["for w in self.widths:", "    x = nn.Dense(w + 1)(x)"],
                ["for f in (nn.relu, nn.gelu):", *body, f"    x = f(nn.Dense({width})(x))"],
                ["k = 1", "for i in range(3):", "    x = nn.Dense(k)(x)", "    k = k + 2"],
                ["for w in self.widths:", "    x = jnp.swapaxes(nn.Dense(w)(x), 1, 2)"],
                ["past = [x]", "for w in self.widths:", *_GROWS],
                ["past = []", "for w in self.widths:", *_KEEPS, *_TAKES],
            ]
            lines += draw(st.sampled_from(blocks))
    return lines


_GROWS = [
    "    x = nn.Dense(w)(jnp.concatenate(past, axis=-1))",
    "    past.append(x)",
]
_KEEPS = ["    x = nn.Dense(w)(x)", "    past.append(x)"]
_TAKES = ["for w in self.widths:", "    x = nn.Dense(w)(jnp.concatenate([x, past.pop()], axis=-1))"]
_THREE = ["if x.ndim == 2:", "    x = x[:, None]"]


@st.composite
def networks(draw: st.DrawFn) -> str:
    lines = [*draw(statements()), f"return nn.Dense({draw(WIDTHS)})(x)"]
    return HEADER + "\n".join(
        [
            "class Block(nn.Module):",
            "    width: int",
            "",
            "    @nn.compact",
            "    def __call__(self, x):",
            "        return nn.Dense(self.width)(nn.Dense(self.width + 1)(x))",
            "",
            "",
            "class Model(nn.Module):",
            f"    flag: bool = {draw(st.booleans())}",
            f"    widths: Any = {tuple(draw(st.lists(WIDTHS, min_size=1, max_size=3)))}",
            "",
            "    @nn.compact",
            "    def __call__(self, x):",
            *(f"        {line}" for line in lines),
            "",
        ]
    )


def run(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, "generated.py", "exec", dont_inherit=True), names)  # noqa: S102
    return names


def shapes(tree: Any) -> dict[str, tuple[int, ...]]:
    flat = traverse_util.flatten_dict(tree, sep="/")
    return {path: leaf.shape for path, leaf in flat.items()}


def traced(text: str, x: jax.ShapeDtypeStruct) -> tuple[Any, dict[str, tuple[int, ...]]]:
    module: linen.Module = run(text)["Model"]()
    output, variables = jax.eval_shape(module.init_with_output, jax.random.key(0), x)
    return output, shapes(variables.get("params", {}))


def sizes_of(text: str, migrated: Any, x: jax.ShapeDtypeStruct) -> dict[str, Any]:
    """What parity hands in: sizes that a Linen trace shows."""
    found = analyse(Project({"generated": parse("generated", "generated.py", text)}))
    maps = {
        name: ClassMap(name, name, size_arguments=one.new_arguments) for name, one in found.items()
    }
    name = "generated.Model"
    calls = record_calls(run(text)["Model"](), (np.ones(x.shape, x.dtype),), {})
    sizes, missing = sizes_for(migrated, ("flag", "widths"), maps[name], calls, (), name)
    assert missing == ()
    return sizes


def first_call(migrated: Any, sizes: dict[str, Any], x: jax.ShapeDtypeStruct) -> tuple[Any, Any]:
    """The shapes of parameters, those of lazy submodules too, and of the output."""

    def call(x: jax.Array) -> tuple[Any, Any]:
        model = build(migrated(**sizes, rngs=nnx.Rngs(0)), x, rngs=jax.random.key(0))
        return nnm.variables_of(model).get("params", {}), model(x)

    params, output = jax.eval_shape(call, x)
    return shapes(params), output


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),  # shrinking takes minutes: every step traces twice
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(networks(), st.tuples(st.just(2), st.integers(2, 5), st.integers(1, 7)))
def test_migrated_networks_have_the_parameters_linen_makes(
    text: str, shape: tuple[int, int, int]
) -> None:
    x = jax.ShapeDtypeStruct(shape, "float32")
    output, params = traced(text, x)
    files = {"generated.py": text}
    result = rewrite_in_form(files, "auto")
    left = [one for one in result.classes if one.form is not Form.EXPLICIT]
    if left:
        assert all(one.reason for one in left)
        return
    migrated = run(texts(result, files)["generated.py"])["Model"]
    sizes = sizes_of(text, migrated, x)
    found, given_back = first_call(migrated, sizes, x)
    assert found == params
    assert given_back.shape == output.shape
