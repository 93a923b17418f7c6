"""PReLU: a leaky ReLU whose slope is a parameter.

``nn.PReLU`` becomes ``nnx.PReLU``: the same parameter (``negative_slope``, one number), the same
initial value and the same program. The native one takes its slope first and needs no ``rngs``.

flax 0.12.8 and 0.12.12: linen/activation.py, nnx/nn/activations.py.
"""

from __future__ import annotations

from nnx_migrate.constructs.common.layers import native
from nnx_migrate.constructs.common.rules import Construct, Example, Layer, same_names
from nnx_migrate.constructs.common.shapes import same

PRELU = Layer(
    name="PReLU",
    target="nnx.PReLU",
    fields=("param_dtype", "negative_slope_init"),
    example=Example(
        "nn.PReLU(negative_slope_init=0.2)",
        "nnx.PReLU(negative_slope_init=0.2)",
    ),
    build=native,
    shape=same,
    sizes=(),
    takes_rngs=False,
    has_factory=False,
    attributes=same_names("param_dtype"),
    variables=("negative_slope",),
    is_one_class=True,
)

CONSTRUCT = Construct(
    __doc__,
    rules=(PRELU,),
    example="""
class Model(nn.Module):
    slope: float = 0.2

    @nn.compact
    def __call__(self, x):
        x = nn.PReLU(negative_slope_init=self.slope)(nn.Dense(16)(x))
        return nn.PReLU()(nn.Dense(4)(x))
""",
    inputs="jnp.linspace(-1, 1, 16).reshape(2, 8)",
    lazy=(
        """
class Model(nn.Module):
    def setup(self):
        self.act = nn.PReLU()

    def __call__(self, x):
        return self.act(x) * self.act.negative_slope_init
""",
        """
class Model(nn.PReLU):
    pass
""",
    ),
)
