"""Functions: activations, pooling, dtype helpers, and small constants.

``flax.nnx`` exports the very objects that ``flax.linen`` does (activations come from ``jax.nn``), so
``nn.relu`` becomes ``nnx.relu`` and computes the same program. ``nn.normalize`` is ``jax.nn``'s
``standardize`` under an old name. Types that modules of ``flax.linen`` import (``Dtype``, ...) are
``flax.typing``'s. ``merge_param``, ``promote_dtype`` and ``canonicalize_dtype``
exist only in Linen: ``nnx_migrate.nn`` has functions of the same name and behaviour. Private helpers that
layers copied from Linen's call (``normalization._compute_stats``) are there under names of their own, or are
NNX's private helpers where these are the same. ``normalization._normalize`` makes parameters and stays lazy.

flax 0.12.8 and 0.12.12: linen/activation.py, linen/pooling.py, linen/dtypes.py, linen/module.py.
"""

from __future__ import annotations

from nnx_migrate.constructs.common.base import linen
from nnx_migrate.constructs.common.references import in_namespace, table
from nnx_migrate.constructs.common.rules import Construct, Example, NameRule

# Names under which flax.nnx exports the same object (a test compares them).
SAME_IN_NNX = (
    *("avg_pool", "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish"),
    *("hard_tanh", "leaky_relu", "log_sigmoid", "log_softmax", "logsumexp", "max_pool"),
    *("min_pool", "one_hot", "pool", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign"),
    *("softmax", "softplus", "standardize", "swish", "tanh"),
)
# Others: the same object under another name.
SAME_ELSEWHERE = {
    "flax.linen.normalize": "nnx.standardize",
    "flax.linen.FrozenDict": "flax.core.FrozenDict",
    "flax.linen.DenyList": "flax.core.DenyList",
}
# Types that modules of flax.linen import from flax.typing.
TYPES = (
    *("Array", "Axes", "ConvGeneralDilatedT", "DotGeneralT", "Dtype", "Initializer"),
    *("LaxPadding", "LogicalNames", "LogicalRules", "PaddingLike", "PRNGKey", "PrecisionLike"),
    *("RNGSequences", "Shape", "VariableDict", "FrozenVariableDict", "MutableVariableDict"),
)

# Private helpers that layers copied from Linen's call: NNX's own of the same text, and ours.
SAME_IN_PARTS = {
    "flax.linen._conv_dimension_numbers": "nnx.nn.linear._conv_dimension_numbers",
    "flax.linen._canonicalize_tuple": "nnx.nn.linear._canonicalize_tuple",
    "flax.linen.canonicalize_padding": "nnx.nn.linear.canonicalize_padding",
}
OWN_HELPERS = {
    "flax.linen._abs_sq": "nnm.squared_magnitude",
    "flax.linen._canonicalize_axes": "nnm.positive_axes",
    "flax.linen._compute_stats": "nnm.mean_and_variance",
    "flax.linen._l2_normalize": "nnm.l2_normalize",
    "flax.linen._normalize_axes": "nnm.sorted_axes",
}

CONSTRUCT = Construct(
    __doc__,
    rules=(
        NameRule(
            name="functions",
            symbols=linen(*SAME_IN_NNX),
            example=Example("nn.relu(x)", "nnx.relu(x)"),
            reference=in_namespace("nnx"),
            is_same=True,
        ),
        NameRule(
            name="moved_names",
            symbols=frozenset(SAME_ELSEWHERE),
            example=Example("nn.normalize(x)", "nnx.standardize(x)"),
            reference=table(SAME_ELSEWHERE),
            is_same=True,
        ),
        NameRule(
            name="types",
            symbols=linen(*TYPES),
            example=Example("nn.linear.PrecisionLike", "flax.typing.PrecisionLike"),
            reference=in_namespace("flax.typing"),
            is_same=True,
        ),
        NameRule(
            name="linen_helpers",
            symbols=linen(
                *("merge_param", "promote_dtype", "canonicalize_dtype", "flip_sequences"),
            ),
            example=Example(
                "nn.merge_param('train', self.train, train)",
                "nnm.merge_param('train', self.train, train)",
            ),
            reference=in_namespace("nnm"),
        ),
        NameRule(
            name="private_helpers",
            symbols=frozenset(SAME_IN_PARTS),
            example=Example(
                "nn.linear.canonicalize_padding('SAME', 2)",
                "nnx.nn.linear.canonicalize_padding('SAME', 2)",
            ),
            reference=table(SAME_IN_PARTS),
        ),
        NameRule(
            name="own_helpers",
            symbols=frozenset(OWN_HELPERS),
            example=Example(
                "nn.normalization._compute_stats(x, (0, 1), None)",
                "nnm.mean_and_variance(x, (0, 1), None)",
            ),
            reference=table(OWN_HELPERS),
        ),
    ),
    example="""
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.max_pool(nn.gelu(x), (2, 2), strides=(2, 2))
        return nn.softmax(nn.Dense(4)(x))
""",
    inputs="jnp.linspace(-1, 1, 96).reshape(2, 4, 4, 3)",
)
