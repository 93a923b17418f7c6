"""``nn.map_variables``: rewritten, run and compared with Linen's, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewrite.running import compare, refused

HEADER = """\
from functools import partial
import flax.linen as nn
import jax
import jax.numpy as jnp


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.tanh(nn.Dense(self.width)(x))


def flipped(variables):
    \"\"\"Every kernel transposed.\"\"\"
    return jax.tree.map(lambda p: p.T, variables)


def renamed(variables):
    return {"params": {"Dense_1": variables["params"]["Dense_0"]}}


def twice(variables):
    variables = dict(variables)
    return jax.tree.map(lambda p: p * 2, variables)


"""
MODEL = """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        {body}
"""
X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)

CASES: dict[str, str] = {
    "a local function whose parameter is called as the method's": """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        def squash(x):
            return jax.tree.map(jnp.tanh, x)

        return nn.map_variables(nn.Dense, "params", squash, init=True)(4)(x)
""",
    "kernels stored transposed": """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        start = self.is_initializing()
        Flipped = nn.map_variables(
            Block, "params", trans_in_fn=flipped, trans_out_fn=flipped,
            init=self.is_initializing(), mutable=start,
        )
        return nn.Dense(2)(Flipped(5, name="last")(Flipped(4)(x)))
""",
    "weights of unit norm, of a built-in layer": """\
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        unit = nn.map_variables(
            nn.Dense, ["params"], lambda v: jax.tree.map(lambda p: p / (1e-3 + jnp.abs(p).max()), v), init=True
        )
        return unit(3)(x)
""",
    "a kernel that is tied and transposed": """\
class Model(nn.Module):
    def setup(self):
        self.dense = nn.Dense(6, use_bias=False)

    def __call__(self, x):
        back = nn.map_variables(lambda m, x: m.dense(x), "params", trans_in_fn=partial(jax.tree.map, jnp.transpose))
        return back(self, self.dense(x))
""",
    "a stack of layers that compute in half precision": """\
class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return nn.tanh(nn.Dense(6)(x)), None


def cast(variables):
    return jax.tree.map(lambda p: p.astype(jnp.bfloat16), variables)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        layer = nn.map_variables(Layer, "params", cast, init=self.is_mutable_collection("params"))
        stack = nn.scan(nn.remat(layer), variable_axes={"params": 0}, split_rngs={"params": True}, length=3)
        return stack()(x, None)[0]
""",
}


@pytest.mark.parametrize("source", CASES.values(), ids=CASES)
def test_the_rewritten_model_is_linens(source: str) -> None:
    report = compare(HEADER + source, "Model()", {"in_features": 6}, (X,))
    assert report.verdict in ("identical", "equal_by_rules", "numerically_equal"), report


def lifted(target: str, options: str) -> str:
    return f"return nn.map_variables({target}, {options})(4)(x)"


REFUSED: dict[str, tuple[str, str]] = {
    "paths that change": (
        lifted("Block", "'params', renamed, init=True"),
        "whose trans_in_fn is not plainly jax.tree.map",
    ),
    "a function that does more": (
        lifted("Block", "'params', trans_out_fn=twice, init=True"),
        "whose trans_out_fn is not plainly jax.tree.map",
    ),
    "another tree than the argument": (
        lifted("Block", "'params', lambda v: jax.tree.map(jnp.sin, x), init=True"),
        "whose trans_in_fn is not plainly jax.tree.map",
    ),
    "a function nobody sees": (
        lifted("Block", "'params', make(), init=True"),
        "whose trans_in_fn is not plainly jax.tree.map",
    ),
    "a map that knows leaves of its own": (
        lifted("Block", "'params', lambda v: jax.tree.map(f, v, is_leaf=g), init=True"),
        "whose trans_in_fn is not plainly jax.tree.map",
    ),
    "no initial parameters": (lifted("Block", "'params', flipped"), "of a class without init="),
    "init by something else": (
        lifted("Block", "'params', flipped, init=x.ndim == 2"),
        "of a class without init=",
    ),
    "twice": (
        lifted("nn.map_variables(Block, 'params', flipped, init=True)", "'params', init=True"),
        "of what another map_variables maps",
    ),
    "all collections": (lifted("Block", "True, flipped, init=True"), "other collections"),
    "two collections": (
        lifted("Block", "['params', 'stats'], flipped, init=True"),
        "other collections",
    ),
    "the default": (lifted("Block", "init=True"), "other collections"),
    "a filter": (lifted("Block", "'params', flipped, init=True, rngs='params'"), "with rngs="),
    "methods": (lifted("Block", "'params', flipped, init=True, methods=['f']"), "with methods="),
    "a function that makes parameters": (
        "return nn.map_variables(lambda m, x: m(x), 'params', flipped, init=True)(nn.Dense(6), x)",
        "of a function that changes or makes parameters",
    ),
    "a function that builds layers": (
        "return nn.map_variables(lambda m, x: nn.Dense(3)(x), 'params', flipped)(self, x)",
        "inside a lambda",
    ),
    "what only the call knows": (
        lifted("Block", "'params', lambda v: jax.tree.map(lambda p: p * x.sum(), v), init=True"),
        "reads variables of the function around it",
    ),
    "a local that is bound again before the call": (
        (
            "s = 2; m = nn.map_variables(Block, 'params', lambda v: jax.tree.map(lambda p: p * s, v), "
            "init=True)(4); s = 3; return m(x)"
        ),
        "reads variables of the function around it",
    ),
    "the module itself": (
        (
            "w = self.param('w', nn.initializers.ones, ()); return nn.map_variables(Block, 'params', "
            "partial(jax.tree.map, lambda p: p * self.w), init=True)(4)(x)"
        ),
        "reads variables of the function around it",
    ),
    "a module that init calls twice": (
        "m = nn.map_variables(Block, 'params', flipped, init=True)(6); return m(m(x))",
        "is called twice",
    ),
}


@pytest.mark.parametrize(("body", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_exact_is_refused(body: str, reason: str) -> None:
    assert reason in refused(HEADER + MODEL.format(body=body))
