"""Embed: a table of vectors.

``nn.Embed(n, f)`` becomes ``nnx.Embed(n, f)``: no size is missing. With ``param_dtype`` given it
becomes ``nnm.Embed``, whose ``attend`` promotes as Linen's does (the native one casts differently).

flax 0.12.8 and 0.12.12: linen/linear.py, nnx/nn/linear.py.
"""

from __future__ import annotations

from nnx_migrate.constructs.base import Code, Example, LayerCall, LayerRule, Refusal, linen
from nnx_migrate.constructs.layers import Layer, native, own, read, reference

EMBED = Layer(
    name="Embed",
    target="nnx.Embed",
    fields=(
        *("num_embeddings", "features", "dtype", "param_dtype", "embedding_init"),
        "promote_dtype",
    ),
    required=("num_embeddings", "features"),
    sizes=(),
    positional=("num_embeddings", "features"),
    functions=("promote_dtype",),
)


def convert(call: LayerCall) -> Code | Refusal:
    """Native, or Linen's ``attend`` where ``param_dtype`` makes a difference."""
    arguments = read(EMBED, call)
    if isinstance(arguments, Refusal):
        return arguments
    if "param_dtype" in arguments.given and "promote_dtype" not in arguments.given:
        return own(EMBED, call)
    return native(EMBED, call)


RULES = (
    LayerRule(
        name="Embed",
        symbols=linen("Embed"),
        example=Example(
            "nn.Embed(num_embeddings=100, features=16)",
            "nnx.Embed(num_embeddings=100, features=16, rngs=rngs)",
        ),
        convert=convert,
        reference=lambda symbol, context: reference(symbol, context, "nnx.Embed"),
    ),
)
