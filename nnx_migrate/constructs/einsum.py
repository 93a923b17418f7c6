"""Einsum: a product with a kernel, by an equation.

``nn.Einsum`` infers its bias shape; ``nnm.Einsum`` does the same. Without a bias the native
``nnx.Einsum`` is the same layer with the first two arguments exchanged.

flax 0.12.8 and 0.12.12: linen/linear.py, nnx/nn/linear.py.
"""

from __future__ import annotations

from nnx_migrate.abstract import shapes
from nnx_migrate.abstract.values import Static, Unknown
from nnx_migrate.constructs.common.base import Code, LayerCall, Refusal, is_literal
from nnx_migrate.constructs.common.layers import has_function, native_call, own, read
from nnx_migrate.constructs.common.rules import Construct, Example, Layer
from nnx_migrate.constructs.common.shapes import Outcome, ShapeCall


def shape(call: ShapeCall) -> Outcome:
    """What the equation says; the kernel has a shape of its own."""
    array, equation = call.first, call.field("einsum_str")
    kernel = shapes.array_of(shapes.shape_of(call.field("shape")))
    if array is None or not (isinstance(equation, Static) and equation.expr.is_constant):
        return {}, Unknown("einsum equation unknown")
    return {}, shapes.einsum(str(equation.expr.constant), [array, kernel])


def build(layer: Layer, call: LayerCall) -> Code | Refusal:
    """Native without a bias, else the layer that infers Linen's bias shape."""
    arguments = read(layer, call)
    if isinstance(arguments, Refusal):
        return arguments
    values = arguments.values
    biasless = is_literal(values.get("use_bias"), False)
    if arguments.open or not biasless or has_function(layer, arguments):
        return own(layer, call)
    if "einsum_str" not in values or is_literal(values["einsum_str"], None):
        return own(layer, call)
    rest = {k: v for k, v in values.items() if k not in ("shape", "einsum_str", "use_bias")}
    first = (values["einsum_str"], values["shape"])
    return native_call(layer, call, type(arguments)(rest), first=first)


EINSUM = Layer(
    name="Einsum",
    target="nnx.Einsum",
    annotation="nnm.Einsum",
    fields=(
        *("shape", "einsum_str", "use_bias", "dtype", "param_dtype", "precision", "kernel_init"),
        *("bias_init", "promote_dtype", "preferred_element_type"),
    ),
    example=Example(
        "nn.Einsum((3, 4), 'ab,bc->ac', use_bias=False)",
        "nnx.Einsum('ab,bc->ac', (3, 4), rngs=rngs)",
    ),
    build=build,
    shape=shape,
    required_fields=("shape",),
    sizes=(),
    keywords={"shape": "kernel_shape"},
    functions=("promote_dtype",),
    attributes={},
    variables=("kernel", "bias"),
)

CONSTRUCT = Construct(
    __doc__,
    rules=(EINSUM,),
    example="""
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Einsum((8, 4, 16), "btd,dhk->bthk", use_bias=False)(x)
        return nn.Einsum((4, 16, 8), "bthk,hkd->btd")(x)
""",
    inputs="jnp.ones((2, 5, 8))",
)
