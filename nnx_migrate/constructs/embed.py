"""Embed: a table of vectors.

``nn.Embed(n, f, dtype=jnp.float32)`` becomes ``nnx.Embed(n, f, dtype=jnp.float32)``: no size is missing.
Where ``dtype`` is not given, or may be None, it becomes ``nnm.Embed``: the native layer takes the dtype of the
table that it makes, and keeps it when the program casts the parameters (``bfloat16`` for inference).

flax 0.12.8 and 0.12.12: linen/linear.py, nnx/nn/linear.py.
"""

from __future__ import annotations

import ast

from nnx_migrate.abstract.joining import as_array
from nnx_migrate.abstract.values import ending
from nnx_migrate.constructs.common.base import Code, LayerCall, Refusal
from nnx_migrate.constructs.common.layers import native, own, read
from nnx_migrate.constructs.common.rules import Construct, Example, Layer, same_names
from nnx_migrate.constructs.common.shapes import Outcome, ShapeCall, opaque


def shape(call: ShapeCall) -> Outcome:
    """The axes of the ids, and ``features``."""
    ids, features = call.first, call.size("features")
    if ids is None:
        return {}, ending(features)
    lead = ids.last_sizes(3 if ids.rank is None else ids.rank)
    return {}, ids.of((*lead, features), 1)


def attend(call: ShapeCall) -> Outcome:
    """``num_embeddings`` in place of the last axis."""
    query = as_array(call.args[0]) if call.args else None
    return opaque(call) if query is None else ({}, query.with_last(call.size("num_embeddings")))


def build(layer: Layer, call: LayerCall) -> Code | Refusal:
    """Native where the dtype is written out, or promoted by a function that is given."""
    arguments = read(layer, call)
    if isinstance(arguments, Refusal):
        return arguments
    dtype = arguments.values.get("dtype")
    is_native = "promote_dtype" in arguments.values or _is_dtype(call, dtype)
    return (native if is_native else own)(layer, call)


def _is_dtype(call: LayerCall, node: ast.expr | None) -> bool:
    """Whether an argument is surely a dtype: ``jnp.float32``."""
    symbol = None if node is None else call.resolve(node)
    return symbol is not None and symbol.startswith(("jax.numpy.", "numpy."))


EMBED = Layer(
    name="Embed",
    target="nnx.Embed",
    fields=(
        *("num_embeddings", "features", "dtype", "param_dtype", "embedding_init"),
        "promote_dtype",
    ),
    example=Example(
        "nn.Embed(num_embeddings=100, features=16)",
        "nnm.Embed(num_embeddings=100, features=16, rngs=rngs)",
    ),
    build=build,
    shape=shape,
    methods={"attend": attend},
    required_fields=("num_embeddings", "features"),
    sizes=(),
    positional=("num_embeddings", "features"),
    functions=("promote_dtype",),
    attributes=same_names("num_embeddings", "features", "param_dtype"),
    variables=("embedding",),
)

CONSTRUCT = Construct(
    __doc__,
    rules=(EMBED,),
    example="""
class Model(nn.Module):
    def setup(self):
        self.embed = nn.Embed(num_embeddings=32, features=16)
        self.mix = nn.Dense(16)

    def __call__(self, tokens):
        x = self.mix(self.embed(tokens))
        return self.embed.attend(x)
""",
    inputs="jnp.ones((2, 5), jnp.int32)",
    lazy=(
        """
class Model(nn.Module):
    def setup(self):
        self.embed = nn.Embed(32, 16)

    def __call__(self, tokens):
        return self.embed(tokens).astype(self.embed.dtype)
""",
    ),
)
