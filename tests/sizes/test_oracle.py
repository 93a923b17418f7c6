"""The shape of one call is what jax makes of it, or unknown."""

from __future__ import annotations

from typing import Any

import jax
import pytest
from flax import linen

from nnx_migrate.sizes import analyse
from nnx_migrate.source.project import Project, parse
from tests.sizes.test_sound import answers, namespace

INPUTS = {
    name: jax.ShapeDtypeStruct(shape, "float32")
    for name, shape in {"x": (2, 3, 4), "y": (2, 3, 5), "w": (2, 2, 3, 4)}.items()
}
HEAD = """
import functools
from typing import Any
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np


class Model(nn.Module):
    keep: bool = True
    heads: int = 1
    n: int = 3
    axis: Any = None
    kw: Any = functools.partial(dict, keepdims=True)

    @nn.compact
    def __call__(self, x, y, w):
"""
RANKS = "b, t, d = x.shape; b, t, e = y.shape; b, h, t, d = w.shape"
# What is made, and its last size where that must be known when the ranks are.
CASES = {
    "ACCUMULATED": """
jnp.cumsum(x)
jnp.cumsum(x, axis=-1) | 4
jnp.cumsum(x, self.axis)
x.cumsum()
jax.lax.cumsum(x) | 4
jnp.sort(x, axis=None)
jnp.sort(x) | 4
jnp.argsort(x, None)
jnp.argsort(x, axis=1) | 4
jax.lax.sort(x, dimension=0) | 4
""",
    "CREATED": """
jnp.eye(4, 7) | 7
jnp.eye(4, M=6) | 6
jnp.eye(4) | 4
jnp.eye(4, None, 1) | 4
jnp.identity(4) * x[:1, 0, :1] | 4
jax.nn.one_hot(jnp.argmax(x, -1), 5, axis=1) | 3
jax.nn.one_hot(jnp.argmax(x, -1), 5, axis=-1) | 5
jax.nn.one_hot(jnp.argmax(x, -1), num_classes=5) | 5
jnp.zeros_like(x, shape=(2, 7)) | 7
jnp.ones_like(x, None, (2, 7)) | 7
jnp.full_like(x, 1.0, shape=(2, 7)) | 7
jnp.zeros_like(x) | 4
np.ones_like(np.ones((2, 5)), None, "C")
jnp.arange(2, 8)
jnp.arange(6.0) | 6
jnp.arange(5.5) | 6
jnp.arange(6) | 6
jnp.arange(0, 6, 2)
jnp.arange(x.shape[-1] / 2)
jnp.array(x, ndmin=5)
jnp.array([[1, 2, 3]]) | 3
jnp.full((2, 3), 1.0) | 3
""",
    "REDUCED": """
x.mean(-1, keepdims=self.keep)
x.mean(-1, **self.kw())
x.mean(1, keepdims=False) | 4
jnp.mean(x, -1, None, None, True) | 1
jnp.mean(x, axis=1, dtype=jnp.float32) | 4
jnp.max(x, -1, None, True) | 1
jnp.std(x, -1, None, None, 0, True) | 1
jnp.argmax(x, -1, None, True) | 1
jnp.median(x, -1, None, False, True) | 1
jnp.any(x > 0, -1, None, True) | 1
jax.nn.logsumexp(x, -1, None, True) | 1
jax.nn.logsumexp(x, axis=-1, keepdims=True) | 1
jax.nn.logsumexp(x[..., :1], 1, y)
jnp.linalg.norm(x, 2, -1, True) | 1
jnp.linalg.norm(x, axis=-1) | 3
jnp.linalg.norm(x, keepdims=True) | 1
x.mean(keepdims=True) | 1
x.mean(None, keepdims=True) | 1
jnp.sum(x[..., :1], axis=0, where=x > 0) | 4
jnp.mean(x, axis=0, where=x > 0) | 4
jnp.mean(x, axis=0, where=None) | 4
jnp.sum(w, (0, -2)) | 4
""",
    "CUT": """
jnp.array_split(x, 3, axis=-1)[0] | 2
jnp.array_split(x, 3, axis=-1)[2] | 1
jnp.array_split(x, 2, axis=1)[0] | 4
jnp.split(x, [1, 3], axis=-1)[1] | 2
jnp.split(x, [1, 3], axis=-1)[2] | 1
jnp.split(x, [self.n], axis=-1)[1] | 1
jnp.take_along_axis(x, jnp.zeros((2, 5, 1), int), axis=1) | 4
jnp.take_along_axis(x, jnp.zeros((2, 3, 6), int), axis=-1) | 6
jnp.take_along_axis(x, jnp.zeros((2, 3, 6), int), 2) | 6
jnp.take_along_axis(x[..., :1], jnp.zeros((2, 5, 7), int), axis=1) | 7
jnp.take_along_axis(x, jnp.zeros(5, int), axis=None)
jnp.tile(x, (2, 1, 1)) | 4
jnp.tile(x, (x.shape[0], 1, 2)) | 8
jnp.tile(x, (3, 1, 1, 1)) | 4
jnp.tile(jnp.ones((1, 4)), (x.shape[0], 1)) | 4
jnp.tile(x, 3) | 12
jnp.split(x, 2, -1)[1] | 2
jnp.split(jnp.concatenate([x, x, x], -1), self.n, -1)[0] | 4
jnp.array_split(x, self.n, -1)[0]
jax.lax.split(x, (1, 3), axis=2)[1]
x[..., 2:1] | 0
x[..., 1:2] | 1
x[..., -1:] | 1
x[..., -3:-1] | 2
x[..., 1:-1] | 2
x[..., 3:-3] | 0
x[..., -2:3] | 1
x[..., :-3] | 1
x[..., :-6] | 0
x[..., 6:] | 0
x[..., -9:] | 4
x[..., 3:9] | 1
x[..., 1:3] | 2
x[..., 3:9][..., :1] | 1
""",
    "INDEXED": """
x[..., jnp.array([0, 2])] | 2
x[..., [0, 2, 1]] | 3
x[..., 0] | 3
x[:, [0, 1]] | 4
x[0, ..., jnp.array([0, 1])] | 3
x[jnp.array([0, 1]), ..., jnp.array([0, 1])] | 3
x[jnp.array([0, 1]), :, ..., jnp.array([0, 1])]
x[:, 0, jnp.array([0, 1, 1])] | 3
x[jnp.array([0, 1]), :, jnp.array([0, 1])] | 3
x[jnp.array([[0, 1]])] | 4
x[jnp.argmax(x[..., 0], -1)] | 4
x[(0, 1)] | 4
x[tuple([0, 1])]
x[..., jnp.array([0, 1]), :] | 4
x[..., None, jnp.array([0, 1])] | 2
x[jnp.array([0, 1]), None, jnp.array([0, 1])] | 4
w[jnp.array([0, 1]), 0] | 4
w[:, 0, :, jnp.array([0, 1])] | 3
x[slice(0, 1)]
x[..., slice(0, 1)]
x[..., jnp.array(1)]
""",
    "PLACED": """
jnp.expand_dims(x, (-1, -3)).mean(-1)
jnp.expand_dims(x, (0, -1)).mean(-1) | 4
jnp.expand_dims(x, (1, -2)).mean(-2) | 4
jnp.expand_dims(x, (3, -3))
jnp.dot(x, jnp.ones((2, 4, 6))) | 6
jnp.dot(x, jnp.ones((4, 6))) | 6
jnp.matmul(x, jnp.ones((4, 6))) | 6
jnp.einsum("b...d->b...d", w) | 4
jnp.einsum("...d,...d->...", x, w)
jnp.einsum("b...d,dk->b...k", w, jnp.ones((4, 6))) | 6
jnp.moveaxis(x, -1, 0) | 3
""",
    "STRETCHED": """
x[..., :1] * y | 5
x[..., -1:] * y | 5
x[..., 1:2] * y | 5
y * x[..., 3:4] | 5
jnp.ones((1, 1, x.shape[-1] // 4)) * y
jnp.ones((1, 1, x.shape[-1] - 3)) * y
jnp.ones((x.shape[-1] - 3,)) * jnp.ones((5,)) | 5
jnp.ones((1, 1, self.heads)) * y
jnp.ones((self.heads,)) * jnp.ones((5,)) | 5
jnp.where(x[..., :1] > 0, x[..., :1], y) | 5
jnp.where(y > 0, x[..., :1], 0.0) | 5
jnp.where(w > 0, x, 0.0) | 4
jnp.clip(x[..., :1], min=y) | 5
jnp.maximum(x[..., :1], y) | 5
jax.lax.max(x, 0.0) | 4
jax.nn.softmax(x[..., :1], where=y > 0)
""",
    "OTHERS": """
jax.nn.glu(x, 2)
jax.nn.glu(x) | 2
jax.nn.glu(w, axis=0)
jnp.take(x, jnp.array([0, 1]), -1)
jnp.repeat(x, 2, axis=-1, total_repeat_length=5)
jnp.repeat(x, 2, axis=-1) | 8
jnp.repeat(x, 2)
jnp.pad(x, ((0, 0), (0, 0), (1, 2))) | 7
jax.lax.pad(x, 0.0, ((0, 0, 0), (0, 0, 0), (1, 1, 1)))
max(x[:, :1], x[:, 1:2], key=lambda a: a.shape[-1])
""",
    "STARRED": """
x.reshape(*x.shape[:-1], 2, 2) | 2
x.reshape(*x.shape[:-1], -1) | 4
w.reshape(*w.shape[:-2], -1) | 12
x.reshape(*x.shape) | 4
jnp.reshape(x, (*x.shape[:-1], 2, 2)) | 2
jnp.broadcast_to(x[..., :1], (*x.shape[:-1], 6)) | 6
jnp.zeros((*x.shape[:-1], 6)) | 6
jnp.zeros((*x.shape[1:], *x.shape[:1])) | 2
jnp.zeros((2, *x.shape[1:-1], 6)) | 6
x.transpose(*range(3))
x.transpose(*(1, 2, 0)) | 2
x.reshape(1, *x.shape[1:-1], x.shape[0], 4) | 4
y.reshape(x.shape[1:-1] + (10,)) | 10
y.reshape((*x.shape[1:-1], 10)) | 10
x.sum(*self.kw(keepdims=0).values(), keepdims=True)
""",
}
ROWS = [line.split(" | ") for text in CASES.values() for line in text.strip().splitlines()]


def _measured(made: str, ranks: str) -> tuple[list[int], list[int | None]]:
    """Real sizes of one call and inferred ones: of its axes, their number, the input of a layer."""
    probes = ("made.shape[-1]", "made.ndim", "made.shape[0]", "(9, *made.shape)[-2]")
    lines = [
        ranks,
        f"made = {made}",
        "layer = functools.partial(nn.Dense, 1, kernel_init=nn.initializers.zeros)",
        "layer()(made)",
    ]
    lines += [f"layer()(jnp.zeros((1, {one})))" for one in probes]
    text = HEAD + "\n".join(f"        {line}" for line in lines if line)
    names: dict[str, Any] = namespace(linen)
    exec(compile(text, "generated.py", "exec", dont_inherit=True), names)  # noqa: S102
    made_by_linen = jax.eval_shape(names["Model"]().init, jax.random.key(0), *INPUTS.values())
    layers = made_by_linen["params"]
    own = names["Model"]()
    real = [layers[f"Dense_{i}"]["kernel"].shape[0] for i in range(len(layers))]
    sizes = analyse(Project({"generated": parse("generated", "generated.py", text)}))
    return real, answers(sizes["generated.Model"], INPUTS, self=own)


@pytest.mark.parametrize("ranks", ["", RANKS], ids=["open", "ranked"])
@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_shape_is_what_jax_has_or_unknown(row: list[str], ranks: str) -> None:
    real, found = _measured(row[0], ranks)
    assert len(real) == len(found)
    for one, answer in zip(real, found, strict=True):
        assert answer in (None, one), (real, found)
    if ranks and len(row) == 2:
        assert real[0] == found[0] == int(row[1]), (real, found)
