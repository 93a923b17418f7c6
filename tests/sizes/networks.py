"""Random networks in two files, over most of what size inference follows."""

from __future__ import annotations

from hypothesis import strategies as st

WIDTHS = st.integers(1, 6)

PARTS = """\
import dataclasses
from typing import Any

import flax.linen as nn
import jax.numpy as jnp


@dataclasses.dataclass(frozen=True)
class Config:
    width: int = 4
    heads: int = 2
    bias: bool = True


def both(x, y, axis=-1):
    return jnp.concatenate([x, y], axis=axis)


def halves(x):
    n = x.shape[-1]
    return x[..., : n // 2], x[..., n // 2 :]


class Mlp(nn.Module):
    config: Config

    @nn.compact
    def __call__(self, x):
        y = nn.Dense(2 * self.config.width, use_bias=self.config.bias)(x)
        return x + nn.Dense(x.shape[-1])(nn.gelu(y))


class Block(nn.Module):
    width: int
    layer: Any = nn.Dense
    norm: Any = nn.LayerNorm

    @nn.compact
    def __call__(self, x):
        return self.norm()(self.layer(self.width)(x))


class Attend(nn.Module):
    heads: int
    size: int

    def setup(self):
        self.query = nn.Dense(self.heads * self.size)
        self.key = nn.Dense(self.heads * self.size)
        self.value = nn.DenseGeneral((self.heads, self.size))
        self.out = nn.DenseGeneral(self.size, axis=(-2, -1))

    def split(self, x):
        return x.reshape(x.shape[:-1] + (self.heads, self.size))

    def __call__(self, x, context=None):
        context = x if context is None else context
        q, k, v = self.split(self.query(x)), self.split(self.key(context)), self.value(context)
        weights = nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
        return self.out(jnp.einsum("bhqk,bkhd->bqhd", weights, v))


class Either(nn.Module):
    first: bool

    def setup(self):
        self.dense = nn.Dense(3)

    def __call__(self, x, y):
        if self.first:
            return self.dense(x)
        return self.dense(y)


class Pair(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x), nn.Dense(self.width + 1)(x)
"""

PARTS += """\


class Scale(nn.Module):
    @nn.compact
    def __call__(self, x):
        shape = tuple(d if i else 1 for i, d in enumerate(x.shape))
        return x * self.param("scale", nn.initializers.ones, shape)


class Scaled(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(Scale()(x))


def scaled(x, width, first=True):
    if first:
        x = nn.Dense(width)(Scale()(x))
    else:
        x = Scale()(nn.Dense(width)(x))
    return x


def mixed(x, width, heads):
    x = x.reshape(x.shape[:-1] + (1, x.shape[-1]))
    return nn.DenseGeneral(width, axis=(-2, -1))(jnp.repeat(x, heads, axis=-2))
"""

HEADER = """\
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from parts import Attend, Block, Config, Either, Mlp, Pair, Scale, Scaled, both, halves, mixed, scaled


"""
_IMAGE = "x = x[:, :, None, :]"
_FLAT = "x = x.reshape((x.shape[0], x.shape[1], -1))"


def _layers(w: int, k: int) -> list[list[str]]:
    """Statements that build layers."""
    return [
        [f"x = nn.Dense({w}, name=None)(x)"],
        [f"x = x + nn.DenseGeneral(x.shape[-1])(nn.Dense({w})(x))"],
        [f"x = nn.Conv({w}, kernel_size=({k},))(x)"],
        [_IMAGE, f"x = nn.Conv({w}, (3, 1), strides=({k}, 1), padding='SAME')(x)", _FLAT],
        [_IMAGE, f"x = nn.ConvTranspose({w}, ({k}, 2), strides=(2, 2))(x)", _FLAT],
        [_IMAGE, "x = nn.avg_pool(x, (2, 1), strides=(2, 1), padding='SAME')", _FLAT],
        [_IMAGE, "x = nn.max_pool(x, (1, 1), strides=(1, 1))", _FLAT, f"x = nn.Dense({w})(x)"],
        [f"x = nn.RNN(nn.GRUCell({w}))(x)"],
        [f"x = nn.RNN(nn.LSTMCell({w}), reverse=True)(x)"],
        [f"x = nn.RNN(nn.SimpleCell({w}))(nn.LayerNorm()(x))"],
        [f"x = nn.Embed(7, {w})(jnp.argmax(x, axis=-1))"],
        ["x = nn.GroupNorm(num_groups=1)(x)", "x = nn.RMSNorm()(x)"],
        [f"x = nn.MultiHeadDotProductAttention(num_heads=2, qkv_features={2 * w})(x, x)"],
        [f"x = nn.MultiHeadDotProductAttention({k}, qkv_features={k * w}, out_features=5)(x, y)"],
        [f"x = nn.Sequential([nn.Dense({w}), nn.relu, nn.Dense({k})])(x)"],
    ]


def _modules(w: int, k: int) -> list[list[str]]:
    """Statements that build modules of the other file, or call its functions."""
    return [
        ["x = Mlp(self.config)(x)"],
        [f"x = Mlp(Config(width={w}))(x)"],
        [f"x = Block({w})(x)", "x = nn.Dense(3)(x)"],
        [f"x = Block({w}, norm=nn.RMSNorm)(x)", "x = nn.Dense(self.config.width)(x)"],
        [f"x = Block({w}, layer=self.layer)(x)", "x = nn.Dense(2)(x)"],
        [f"x = Attend(self.config.heads, {w})(x)"],
        [f"x = Attend({k}, {w})(x, y)"],
        [
            "a = Either(self.flag)(x, y)",
            f"x = both(x, a.mean(1, keepdims=True) * jnp.ones({_ONES}))",
        ],
        [f"a, b = Pair({w})(x)", "x = both(a, b)"],
        ["a, b = halves(both(x, x))", "x = both(b, a)"],
        [f"x = both(x, nn.Dense({w})(x))"],
        ["x = Scale()(x)"],
        [f"x = Scaled({w})(both(x, x))"],
        [f"x = scaled(nn.Dense({k})(x), {w})"],
        [f"x = scaled(x, {w}, first=False)", "x = Scale()(x)"],
        [f"x = mixed(x, {w}, {k})"],
    ]


_ONES = "x.shape[:2] + (1,)"


def _shapes(w: int, k: int) -> list[list[str]]:
    """Statements that only change the shape."""
    return [
        ["x = jnp.einsum('btc,bsc->bts', x, x)"],
        ["x = jnp.transpose(x, (0, 2, 1))"],
        ["x = x.reshape((x.shape[0], -1, 1))"],
        [f"x = jnp.tile(x, (1, 1, {k}))"],
        [f"x = jnp.repeat(x, {k}, axis=-1)"],
        [f"x = jnp.pad(x, ((0, 0), (0, 0), (1, {k})))"],
        ["x = jnp.moveaxis(x, -1, 1)"],
        ["x = jnp.expand_dims(x.sum(axis=1), 1)"],
        ["b, t, c = x.shape", "x = x.reshape(b, 1, t * c)"],
        ["x = x @ jnp.swapaxes(x, -1, -2)"],
        ["flat = x.ndim == 2", "x = jnp.expand_dims(x, 1) if flat else x"],
        ["x = x.mean(axis=1)", "x = x[:, None] if x.ndim == 2 else x"],
        ["x = x[:, 0]", "x = x if x.ndim != 2 else jnp.stack([x, x], axis=1)"],
        [f"x = jnp.concatenate([x, jnp.ones(x.shape[:-1] + ({w},))], -1)"],
    ]


def _blocks(w: int, k: int, body: list[str]) -> list[list[str]]:
    """Statements with blocks; each line of ``body`` is indented."""
    return [
        ["if self.flag:", *body],
        ["if not self.flag:", *body, "else:", f"    x = nn.Dense({w})(x)"],
        ["if self.config.bias:", "    x = nn.Dense(4)(x)", "else:", *body],
        [f"for _ in range({k}):", *body],
        [f"for i in range({k}):", f"    x = nn.Dense({w} + i)(x)", *body],
        ["for width in self.widths:", "    x = nn.Dense(width)(x)", *body],
        ["for i, width in enumerate(self.widths):", "    x = both(x, nn.Dense(width + i)(x))"],
        ["for width in self.widths[::-1]:", "    x = Block(width)(x)", "    x = nn.Dense(2)(x)"],
        [f"many = [{k} * w for w in self.widths] if self.flag else self.widths", *_EACH],
        ["many = self.widths[:1]", "if not self.flag:", "    many = self.widths", *_EACH],
        ["d = nn.Dense(3)", "if self.flag:", "    x = d(x)", "else:", "    x = d(both(x, x))"],
    ]


def _kept(w: int, k: int) -> list[list[str]]:
    """Statements that keep arrays and layers in locals, lists and dicts, and read them later."""
    each = "for width in self.widths:"
    return [
        ["y = x"],
        [f"x = both(x, {_WIDENED})"],
        ["z = x", each, "    z = both(z, nn.Dense(width)(x))", "x = both(z, x)"],
        [each, "    y = x", "    x = nn.Dense(width)(x)"],
        [each, "    y = x", "    x = both(x, nn.Dense(width)(x))"],
        [
            f"for i in range({k}):",
            f"    x = nn.Dense({w} + i)(x)",
            "    if i == 0:",
            "        y = x",
        ],
        ["skips = []", each, "    x = nn.Dense(width)(x)", "    skips.append(x)", *_POPPED],
        ["skips = [x]", each, "    skips.append(nn.Dense(width)(skips[-1]))", "x = skips[-1]"],
        [f"skips = [nn.Dense({w})(x), nn.Dense({k})(x)]", "x = jnp.concatenate(skips, -1)"],
        [f"kept = {{'a': x, 'b': nn.Dense({w})(x)}}", "x = both(kept['b'], kept['a'])"],
        ["layers = [nn.Dense(width) for width in self.widths]", "for f in layers:", "    x = f(x)"],
        [f"layers = [nn.Dense({w}), nn.LayerNorm()]", "for f in layers[::-1]:", "    x = f(x)"],
        [f"layers = {{'a': nn.Dense({w}), 'b': nn.Dense({k})}}", "x = layers['b'](layers['a'](x))"],
        ["layers = []", each, "    layers.append(Block(width))", *_ZIPPED],
        ["match x.shape:", f"    case (_, _, {w}):", f"        x = nn.Dense({k})(x)"],
        ["def inner(z, width):", "    return nn.Dense(width)(z)", f"x = inner(x, {w})"],
        [f"w = {w}", f"for _ in range({k}):", "    x = nn.Dense(w)(x)", "    w = x.shape[-1] + 1"],
        ["a, *b = self.widths", "x = nn.Dense(a + len(b))(x)", *_LAST],
    ]


_WIDENED = "y.mean(1, keepdims=True) * jnp.ones(x.shape[:2] + (1,))"
_POPPED = [
    "for width in reversed(self.widths):",
    "    x = both(x, skips.pop())",
    "    x = nn.Dense(width)(x)",
]
_ZIPPED = ["for f, width in zip(layers, self.widths):", "    x = nn.Dense(width)(f(x))"]
_LAST = ["for width in b:", "    x = both(x, nn.Dense(width)(x))"]
_EACH = ["for width in many:", "    x = nn.Dense(width)(x)"]


@st.composite
def _statements(draw: st.DrawFn, depth: int) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        w, k = draw(WIDTHS), draw(st.integers(1, 3))
        kinds = [_layers(w, k), _layers(w, k), _modules(w, k), _shapes(w, k), _kept(w, k)]
        lines += draw(st.sampled_from(draw(st.sampled_from(kinds))))
        if depth < 2 and draw(st.booleans()):
            body = [f"    {line}" for line in draw(_statements(depth + 1))]
            lines += draw(st.sampled_from(_blocks(w, k, body)))
    return lines


@st.composite
def networks(draw: st.DrawFn) -> str:
    """The text of ``model.py``, which imports :data:`PARTS` as ``parts``."""
    widths = tuple(draw(st.lists(WIDTHS, min_size=1, max_size=3)))
    layer = draw(st.sampled_from(["nn.Dense", "nn.DenseGeneral"]))
    lines = ["y = x", *draw(_statements(0)), f"return nn.Dense({draw(WIDTHS)})(x)"]
    return HEADER + "\n".join(
        [
            "class Model(nn.Module):",
            f"    flag: bool = {draw(st.booleans())}",
            f"    widths: Any = {widths}",
            f"    config: Config = Config(width={draw(WIDTHS)}, bias={draw(st.booleans())})",
            f"    layer: Any = {layer}",
            "",
            "    @nn.compact",
            "    def __call__(self, x):",
            *(f"        {line}" for line in lines),
            "",
        ]
    )


def _built(w: int, k: int, name: str) -> list[list[str]]:
    """Statements of ``setup`` that bind the attribute ``name``, and how calls use it."""
    many = f"for f in self.{name}:"
    return [
        [f"self.{name} = nn.Dense({w})", f"x = self.{name}(x)"],
        [f"self.{name} = Block({w})", f"x = both(x, self.{name}(x))"],
        [f"self.{name} = nn.Dense({w})", f"x = both(x, self.{name}(y)[:, :1] * jnp.ones({_ONES}))"],
        [f"self.{name} = [nn.Dense(w) for w in self.widths]", many, "    x = f(x)"],
        [f"self.{name} = [nn.Dense(w + {k}) for w in self.widths]", many, "    x = both(x, f(x))"],
        [
            f"self.{name} = [nn.Dense(w) for w in self.widths]",
            f"for i, f in enumerate(self.{name}):",
            f"    x = both(f(x), x) if i < {k} else f(x)",
        ],
        [
            f"self.{name} = [Block({w} + i) for i in range({k})]",
            f"for i in range({k}):",
            f"    x = self.{name}[i](x)",
        ],
        [f"self.{name} = [nn.Dense({w}), nn.Dense({k})]", f"x = self.{name}[1](self.{name}[0](x))"],
        [
            f"self.{name} = [nn.Dense({w}), nn.Dense({k})]",
            f"x = self.{name}[-1](self.{name}[0](x))",
        ],
        [
            f"self.{name} = [nn.Dense({w}) for _ in range({k})]",
            f"for f in reversed(self.{name}):",
            "    x = f(x)",
        ],
        [
            f"self.{name} = {{'p': nn.Dense({w}), 'q': nn.Dense({k})}}",
            f"x = both(self.{name}['q'](x), self.{name}['p'](x))",
        ],
        [
            f"self.{name} = {{'p': nn.Dense({w}), 'q': nn.Dense({k})}}",
            f"for f in self.{name}.values():",
            "    x = both(x, f(y)[:, :1] * jnp.ones(x.shape[:2] + (1,)))",
        ],
    ]


@st.composite
def _calls(draw: st.DrawFn, names: list[str]) -> tuple[list[str], list[str]]:
    """Lines of ``setup`` in another order than the call uses what they bind, and the call's."""
    setup: list[str] = []
    call: list[str] = []
    for name in names:
        w, k = draw(WIDTHS), draw(st.integers(1, 3))
        first, *uses = draw(st.sampled_from(_built(w, k, name)))
        setup.insert(draw(st.integers(0, len(setup))), first)
        between = [[], ["y = x"], ["z = both(x, y.mean(1, keepdims=True) * jnp.ones(_))", "x = z"]]
        call += [*draw(st.sampled_from(between)), *uses]
        block = draw(st.sampled_from(["", "", "if self.flag:", "for _ in range(1):"]))
        if block and draw(st.booleans()):
            call = [*call[: -len(uses)], block, *(f"    {one}" for one in call[-len(uses) :])]
    return setup, [one.replace("(_)", f"({_ONES})") for one in call]


@st.composite
def setups(draw: st.DrawFn) -> str:
    """The text of ``model.py`` with a ``Model`` that builds everything in ``setup``."""
    names = [f"part{number}" for number in range(draw(st.integers(1, 4)))]
    setup, call = draw(_calls(names))
    widths = tuple(draw(st.lists(WIDTHS, min_size=1, max_size=3)))
    return HEADER + "\n".join(
        [
            "class Model(nn.Module):",
            f"    flag: bool = {draw(st.booleans())}",
            f"    widths: Any = {widths}",
            "",
            "    def setup(self):",
            *(f"        {line}" for line in setup),
            "",
            "    def __call__(self, x):",
            *(f"        {line}" for line in ["y = x", *call, "return x"]),
            "",
        ]
    )
