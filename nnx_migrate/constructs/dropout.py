"""Dropout: sets elements to zero at random, from the stream ``dropout``.

``nn.Dropout`` becomes ``nnx.Dropout`` where either its constructor or each of its calls says by keyword
whether to drop. ``nnx.Dropout`` drops by default: where Linen raises because ``deterministic=None`` is
all that it is told, the NNX module drops. Other uses become ``nnm.Dropout``, an ``nnx.Dropout`` with
Linen's signature (``deterministic`` by position, ``rng=``) and errors.

flax 0.12.8 and 0.12.12: linen/stochastic.py, nnx/nn/stochastic.py.
"""

from __future__ import annotations

from nnx_migrate.abstract.values import CallForm
from nnx_migrate.constructs.common.base import Code, LayerCall, Refusal
from nnx_migrate.constructs.common.layers import native_call, own, read
from nnx_migrate.constructs.common.rules import Construct, Example, Layer, same_names
from nnx_migrate.constructs.common.shapes import same

_PLAIN = CallForm(1)
_KEYWORD = CallForm(1, frozenset({"deterministic"}))


def _build(layer: Layer, call: LayerCall) -> Code | Refusal:
    arguments = read(layer, call)
    if isinstance(arguments, Refusal) or arguments.open:
        return own(layer, call)
    form = _PLAIN if "deterministic" in arguments.values else _KEYWORD
    if call.calls != {form}:
        return own(layer, call)
    return native_call(layer, call, arguments)


DROPOUT = Layer(
    name="Dropout",
    target="nnx.Dropout",
    fields=("rate", "broadcast_dims", "deterministic", "rng_collection"),
    example=Example(
        "nn.Dropout(0.1, deterministic=not train)",
        "nnx.Dropout(0.1, deterministic=not train, rngs=rngs)",
    ),
    build=_build,
    shape=same,
    required_fields=("rate",),
    sizes=(),
    positional=("rate",),
    attributes=same_names("rate"),
    is_stateless=True,
    is_one_class=True,
    at_call=("deterministic",),
)

CONSTRUCT = Construct(
    __doc__,
    rules=(DROPOUT,),
    example="""
class Model(nn.Module):
    rate: float = 0.1

    @nn.compact
    def __call__(self, x, train: bool = False):
        x = nn.Dense(16)(x)
        return nn.Dropout(self.rate, deterministic=not train)(x)
""",
    inputs="jnp.ones((2, 8))",
    lazy=(
        """
class Model(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool = False):
        drop = nn.Dropout(0.1, deterministic=not train)
        return self.run(drop, x)

    def run(self, layer, x):
        return layer(x)
""",
    ),
)
