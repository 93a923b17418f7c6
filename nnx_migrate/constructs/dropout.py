"""Dropout: sets elements to zero at random, from the stream ``dropout``.

``nn.Dropout`` becomes ``nnm.Dropout``: Linen's call signature (``deterministic`` by position,
``rng=``) and errors, and no ``dropout`` stream needed while nothing is dropped. The native
``nnx.Dropout`` defaults to dropping where Linen raises, and takes ``deterministic`` by keyword only.

flax 0.12.8 and 0.12.12: linen/stochastic.py, nnx/nn/stochastic.py.
"""

from __future__ import annotations

from nnx_migrate.constructs.common.layers import own
from nnx_migrate.constructs.common.rules import Construct, Example, Layer
from nnx_migrate.constructs.common.shapes import same

DROPOUT = Layer(
    name="Dropout",
    target="nnm.Dropout",
    fields=("rate", "broadcast_dims", "deterministic", "rng_collection"),
    example=Example(
        "nn.Dropout(0.1, deterministic=not train)",
        "nnm.Dropout(0.1, deterministic=not train, rngs=rngs)",
    ),
    build=own,
    shape=same,
    required=("rate",),
    sizes=(),
    attributes={"rate": "rate"},
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
