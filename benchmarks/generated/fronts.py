"""Models of other inputs and outputs than ``Model`` has: images, tokens, graphs, dicts, tuples.

``Net`` brings what it is given to the shape (3, 4) of ``Model``, which it builds or is handed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from benchmarks.generated.writing import (
    Piece,
    Written,
    attribute,
    class_text,
    indented,
    local,
    piece,
)

ARRAY = "jnp.asarray(np.random.default_rng(0).normal(size=(3, 4)), jnp.float32)"
BATCH = """\
@flax.struct.dataclass
class Batch:
    obs: Any
    mask: Any


"""


@dataclass(frozen=True)
class Front:
    """A model, the text of its input, and definitions that this needs."""

    model: Written
    given: str = ARRAY
    top: str = ""

    @property
    def is_float(self) -> bool:
        """Whether the input is one array that gradients are taken of."""
        return self.given.startswith("jnp.asarray(np.random.default_rng(0).normal(")


def _normal(*shape: int) -> str:
    return f"jnp.asarray(np.random.default_rng(0).normal(size={shape}), jnp.float32)"


_MASK = "jnp.asarray([1.0, 0.0, 1.0], jnp.float32)"
_PAIR = {"obs": _normal(3, 4), "action": _normal(3, 2)}
_GIVEN = {
    "image": _normal(3, 6, 6, 2),
    "tokens": "jnp.asarray([[1, 2, 3, 0, 0], [4, 5, 6, 1, 0], [2, 2, 0, 0, 0]])",
    "dict": f'{{"obs": {_PAIR["obs"]}, "action": {_PAIR["action"]}}}',
    "tuple": f"({_normal(3, 4)}, {_MASK})",
    "graph": f'{{"nodes": {_normal(3, 4)}, "senders": jnp.array([0, 1, 2, 2]), "receivers": jnp.array([1, 2, 0, 1])}}',
    "sequence": _normal(3, 5, 2),
    "batch": f"Batch(obs={_normal(3, 4)}, mask={_MASK})",
}  # fmt: skip


def _images(t: str) -> list[Piece]:
    return [
        piece(["@net0 = nn.Conv(5, (3, 3), strides=2)", "@net1 = nn.Dense(4)"], "x = nn.relu(@net0(x))", "x = @net1(x.reshape((x.shape[0], -1)))"),
        piece(["@net0 = nn.Conv(4, kernel_size=(3, 3), use_bias=False)", "@net1 = nn.BatchNorm()"], f"x = @net1(@net0(x), use_running_average=not {t})", "x = nn.max_pool(nn.relu(x), (2, 2), strides=(2, 2)).mean(axis=(1, 2))"),
        piece(
            ["@net0 = nn.Conv(4, (2, 2), strides=(2, 2), padding='VALID')", "@net1 = self.param('cls', nn.initializers.zeros, (1, 1, 4))", "@net2 = self.param('positions', nn.initializers.normal(0.02), (1, 10, 4))", "@net3 = nn.SelfAttention(num_heads=2)"],
            "x = @net0(x)", "batch, height, width, channels = x.shape", "x = x.reshape(batch, height * width, channels)",
            "x = jnp.concatenate([jnp.tile(@net1, (batch, 1, 1)), x], axis=1) + @net2", "x = (x + @net3(x))[:, 0]",
        ),
        piece(["@net0 = [nn.Conv(width, (3, 3)) for width in (2, 3)]", "@net1 = nn.Dense(4)"], "for layer in @net0:", "    x = nn.avg_pool(nn.silu(layer(x)), (2, 2), (2, 2), 'SAME')", "x = @net1(x.reshape(x.shape[0], -1))"),
    ]  # fmt: skip


def _tokens(t: str) -> list[Piece]:
    return [
        piece(["@net0 = nn.Embed(7, 4)", "@net1 = nn.Embed(8, 4)"], "x = (@net0(x) + @net1(jnp.arange(x.shape[-1]))).mean(1)"),
        piece(["@net0 = nn.Embed(num_embeddings=7, features=4)", "@net1 = nn.MultiHeadDotProductAttention(num_heads=2)", "@net2 = nn.LayerNorm()"], "mask = nn.combine_masks(nn.make_causal_mask(x), nn.make_attention_mask(x > 0, x > 0))", "x = @net0(x)", "x = @net2(x + @net1(x, mask=mask))[:, -1]"),
        piece(["@net0 = nn.Embed(7, 3)", "@net1 = nn.RNN(nn.LSTMCell(4))"], "lengths = jnp.maximum((x > 0).sum(-1), 1)", "x = @net1(@net0(x), seq_lengths=lengths)[jnp.arange(x.shape[0]), lengths - 1]"),
        piece("@net0 = nn.Dense(4, use_bias=False)", "x = @net0(jax.nn.one_hot(x, 7)).sum(axis=-2)"),
    ]  # fmt: skip


def _dicts(t: str) -> list[Piece]:
    return [
        piece("@net0 = nn.Dense(4)", "x = @net0(jnp.concatenate([x['obs'], x['action']], axis=-1))"),
        piece(["@net0 = nn.Dense(4)", "@net1 = nn.Dense(4)"], "obs, action = x['obs'], x['action']", "x = nn.tanh(@net0(obs)) * @net1(action)"),
        piece("", "x = sum(nn.Dense(4, name=key)(value) for key, value in sorted(x.items()))", compact=True),
        piece(["@net0 = {key: nn.Dense(4) for key in ('obs', 'action')}"], "x = @net0['obs'](x['obs']) + @net0['action'](x['action'])"),
    ]  # fmt: skip


def _tuples(t: str) -> list[Piece]:
    return [
        piece("@net0 = nn.Dense(4)", "x, mask = x", "x = @net0(x) * mask[:, None]"),
        piece(["@net0 = nn.LayerNorm()", "@net1 = nn.Dense(4)"], "hidden = @net0(x[0], mask=x[1][:, None] > 0)", "x = @net1(hidden)"),
    ]  # fmt: skip


def _graphs(t: str) -> list[Piece]:
    return [
        piece(["@net0 = nn.Dense(5)", "@net1 = nn.Dense(4)"], "nodes = x['nodes']", "edges = nn.relu(@net0(jnp.concatenate([nodes[x['senders']], nodes[x['receivers']]], -1)))", "x = @net1(jax.ops.segment_sum(edges, x['receivers'], nodes.shape[0])) + nodes"),
        piece(["@net0 = nn.Dense(4)", "@net1 = nn.GRUCell(4)"], "nodes, senders, receivers = x['nodes'], x['senders'], x['receivers']", "for _ in range(2):", "    messages = @net0(nodes)[senders]", "    nodes, _ = @net1(nodes, jax.ops.segment_sum(messages, receivers, num_segments=3))", "x = nodes"),
    ]  # fmt: skip


def _sequences(t: str) -> list[Piece]:
    return [
        piece(["@net0 = nn.RNN(nn.GRUCell(4), return_carry=True)"], "x, _ = @net0(x)"),
        piece(["@net0 = nn.Conv(4, (3,), padding='CAUSAL', feature_group_count=2)", "@net1 = nn.Dropout(0.3)"], f"x = @net1(@net0(x), deterministic=not {t})[:, -1]"),
        piece("@net0 = nn.Dense(4)", "x = jnp.einsum('btd,bsd->bts', @net0(x), @net0(x)).max(1)[:, :4]"),
        piece(["@net0 = nn.Dense(4)", "@net1 = nn.Dense(1)"], "weights = nn.softmax(@net1(x), axis=1)", "x = (@net0(x) * weights).sum(axis=1)"),
    ]  # fmt: skip


def _batches(t: str) -> list[Piece]:
    return [
        piece("@net0 = nn.Dense(4)", "x = @net0(x.obs) * x.mask[:, None]"),
        piece("@net0 = nn.Dense(4)", "x = x.replace(obs=@net0(x.obs))", "x = jnp.where(x.mask[:, None] > 0, x.obs, 0.0)"),
    ]  # fmt: skip


_FRONTS = {
    "image": _images, "tokens": _tokens, "dict": _dicts, "tuple": _tuples, "graph": _graphs,
    "sequence": _sequences, "batch": _batches,
}  # fmt: skip


def _backs(t: str) -> list[Piece]:
    return [
        piece("", "out = x"),
        piece(["@net7 = nn.Dense(2)", "@net8 = nn.Dense(1)"], "out = {'policy': @net7(x), 'value': @net8(x).squeeze(-1)}"),
        piece("@net7 = nn.Dense(3)", "out = @net7(x), x.mean()"),
        piece(["@net7 = nn.Dense(4)", "@net8 = nn.Dense(4)"], "mean, log_scale = jnp.split(@net7(x), 2, axis=-1)", "out = @net8(mean + jnp.exp(log_scale) * 0.5)"),
        piece(["@net7 = nn.Dense(2)", "@net8 = self.param('log_std', nn.initializers.zeros, (2,))"], "out = @net7(x), jnp.broadcast_to(@net8, (3, 2))"),
        piece("@net7 = [nn.Dense(2) for _ in range(2)]", "out = jnp.stack([head(x) for head in @net7], axis=1)"),
    ]  # fmt: skip


@st.composite
def fronts(draw: st.DrawFn, model: Written) -> Front:
    """``Model`` as it is, or a ``Net`` around it."""
    kind = draw(st.sampled_from([None, None, *_FRONTS]))
    if kind is None:
        return Front(model)
    form = draw(st.sampled_from(["compact", "setup", "methods"]))
    only = "compact" if form == "compact" else "setup"
    front, back = (
        draw(st.sampled_from([one for one in made if one.only in ("", only)]))
        for made in (_FRONTS[kind]("train"), _backs("train"))
    )
    held = draw(st.booleans())
    text = _net(form, front, back, held)
    net = replace(
        model,
        name="Net",
        text=text,
        options=("flag=False", "flag=True"),
        args="",
        required=(f"body={model.name}()",) if held else (),
        is_setup=form != "compact",
        top=(),
    )
    return Front(net, _GIVEN[kind], BATCH if kind == "batch" else "")


def _net(form: str, front: Piece, back: Piece, held: bool) -> str:
    """The text of the class; ``held``: it is handed its ``Model``."""
    fields = ["body: nn.Module", "flag: bool = True"] if held else ["flag: bool = True"]
    body = "self.body" if held else "@net5"
    built = [*front.built, *([] if held else ["@net5 = Model(flag=self.flag)"]), *back.built]
    turned = ["def turned(self, x):", "    return jax.tree.map(jnp.negative, self(x))"]
    head = "def __call__(self, x, train: bool = True):"
    if form == "compact":
        lines = local([*built, *front.called, f"x = {body}(x, train)", *back.called])
        call = ["@nn.compact", head, *indented([*lines, "return out"])]
        return class_text("Net", fields, [call, turned])
    setup = ["def setup(self):", *indented(attribute(built) or ["pass"])]
    if form == "setup":
        lines = attribute([*front.called, f"x = {body}(x, train)", *back.called])
        call = [head, *indented([*lines, "return out"])]
        return class_text("Net", fields, [setup, call, turned])
    encode = ["def encode(self, x, train: bool = True):", *indented([*attribute(front.called), "return x"])]  # fmt: skip
    decode = ["def decode(self, x):", *indented([*attribute(back.called), "return out"])]
    run = f"return self.decode({attribute([body])[0]}(self.encode(x, train), train))"
    return class_text("Net", fields, [setup, encode, decode, [head, f"    {run}"], turned])


def has_methods(model: Written) -> bool:
    """Whether the class takes its work apart."""
    return bool(re.search(r"def encode\(", model.text))
