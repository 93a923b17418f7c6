"""Dense: a matrix product over the last axis, with a kernel and a bias.

``nn.Dense(f)`` becomes ``nnx.Linear(in_features, f)``: the same program, initial values and
parameter names. The input size that Linen takes from the first input is a constructor argument in
NNX. A ``dot_general`` or ``promote_dtype`` function goes through ``nnm.factory``, which adapts it to
NNX's calling convention.

flax 0.12.8 and 0.12.12: linen/linear.py, nnx/nn/linear.py.
"""

from __future__ import annotations

from nnx_migrate.abstract.values import ending
from nnx_migrate.constructs.common.layers import UNSUPPORTED_PRODUCT, native
from nnx_migrate.constructs.common.rules import Construct, Example, Layer, same_names
from nnx_migrate.constructs.common.shapes import Outcome, ShapeCall


def shape(call: ShapeCall) -> Outcome:
    """``features`` in place of the last axis."""
    array, features = call.first, call.size("features")
    if array is None:
        return {"in_features": None}, ending(features)
    return {"in_features": array.axis(-1)}, array.with_last(features)


DENSE = Layer(
    name="Dense",
    target="nnx.Linear",
    fields=(
        *("features", "use_bias", "dtype", "param_dtype", "precision", "kernel_init", "bias_init"),
        *("promote_dtype", "dot_general", "dot_general_cls"),
    ),
    example=Example(
        "nn.Dense(64, use_bias=False)", "nnx.Linear(in_features, 64, use_bias=False, rngs=rngs)"
    ),
    build=native,
    shape=shape,
    required_fields=("features",),
    positional=("features",),
    keywords={"features": "out_features"},
    functions=("promote_dtype", "dot_general"),
    recipes=UNSUPPORTED_PRODUCT,
    attributes={"features": "out_features", **same_names("use_bias", "dtype", "param_dtype")},
    variables=("kernel", "bias"),
)

CONSTRUCT = Construct(
    __doc__,
    rules=(DENSE,),
    example="""
class Model(nn.Module):
    width: int = 64

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(self.width, kernel_init=nn.initializers.normal(0.02))(x))
        return nn.Dense(10, use_bias=False)(x)
""",
    inputs="jnp.ones((2, 8))",
    lazy=(
        """
class Model(nn.Module):
    products: type

    @nn.compact
    def __call__(self, x):
        return nn.Dense(8, dot_general_cls=self.products)(x)
""",
        """
class Model(nn.Module):
    def setup(self):
        self.head = nn.Dense(8)

    def __call__(self, x):
        return self.head(x) * self.head.kernel_init
""",
    ),
)
