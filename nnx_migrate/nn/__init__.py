"""Layers, factories and small helpers that migrated code imports: Linen's numbers and names in NNX.

Everything here needs only ``jax`` and ``flax.nnx``. Import it as ``from nnx_migrate import nn as
mnn`` (or any name); :mod:`nnx_migrate.nn.building.factory` holds builders with Linen's own signatures.

What a Linen layer becomes stands in its construct's file (``nnx_migrate/constructs``, ``docs/constructs``).
*Native* layers are NNX's own: they give Linen's bits (values, gradients, initial values), in float32 and
bfloat16. Layers are here where the native one differs in numbers, parameter names or variable tree; they
take Linen's arguments, and sizes and ``rngs`` by keyword.

Lifted classes. ``scan(Block, variable_axes={"params": 0}, split_rngs={"params": True}, length=n)`` is a
class like ``Block`` whose instances hold the variables of all layers and whose call is one
``jax.lax.scan``: Linen's names, shapes, program and (under ``build``) initial values. ``vmap``,
``remat`` and ``jit`` lift likewise, and all of them functions of modules. They bring back only what a call changed.

Variables. ``self.param(name, init, *args)`` -> ``nnx.Param(init(rngs.params(), *args))``: bit-equal
to Linen's value when both see the same key and both run under ``jax.jit`` (eager and compiled
initialisers can differ by one ulp); an initialiser that ignores its key is passed one all the same.
``self.variable(col, name, init, *args)`` -> ``variable(col, init(*args))``; ``v.value = x`` ->
``v.set_value(x)`` (``v[...] = x`` would cast to the old dtype), ``v.value`` -> ``v[...]``, or
``v.get_value()`` where it may be no array. ``self.make_rng(name)`` -> ``self.<name>_rng = stream(rngs,
name)`` in ``__init__`` and ``self.<name>_rng()`` in the call; a variable that starts from such a key
draws it in ``__init__``, ``make_rng(rngs, name)``, and ``count_draw(self, rngs, name)`` stands where a call
draws one before it makes a parameter. Modules behind ``nnx.bridge.ToNNX`` get their variables from ``lazy_init(model, *inputs)``, which leaves those around them as they are.

Class-valued fields (``norm: ModuleDef = nn.BatchNorm``, ``partial(nn.Conv, use_bias=False)``) take
``factory.BatchNorm``, ``partial(factory.Conv, use_bias=False)`` and are called as
``self.norm(use_running_average=..., in_features=in, rngs=rngs)``: Linen's positional order, sizes
keyword-only. ``in_features=`` and ``rngs=`` are accepted by every factory, also where unused.
"""

from flax.nnx import avg_pool, max_pool, min_pool, pool

from nnx_migrate.nn.building import factory
from nnx_migrate.nn.building.decorating import class_decorator
from nnx_migrate.nn.building.fields import with_fields
from nnx_migrate.nn.building.lazy import (
    EITHER,
    abstract_array,
    abstractly,
    as_field,
    constant,
    copied,
    freeze,
    get_submodules,
    lazy_variable,
    named,
    read,
    set_submodules,
)
from nnx_migrate.nn.building.naming import LinenNames, built_for, linen_name, out_features
from nnx_migrate.nn.building.protocols import ProtocolMeta
from nnx_migrate.nn.building.renaming import called_in_linen, named_in_linen, order_in_linen
from nnx_migrate.nn.building.size_arguments import sized
from nnx_migrate.nn.building.unbound import Unbound, with_params
from nnx_migrate.nn.calls.bridging import lazy_init, makes_state
from nnx_migrate.nn.calls.functional import (
    abstract,
    apply,
    bind,
)
from nnx_migrate.nn.calls.initial import variables_of, variables_with
from nnx_migrate.nn.calls.plain import call
from nnx_migrate.nn.layers.attention import (
    MultiHeadAttention,
    MultiHeadDotProductAttention,
    SelfAttention,
    combine_masks,
    dot_product_attention,
    dot_product_attention_weights,
    make_attention_mask,
    make_causal_mask,
)
from nnx_migrate.nn.layers.cells import (
    ConvLSTMCell,
    GRUCell,
    LSTMCell,
    MGUCell,
    OptimizedLSTMCell,
    RNNCellBase,
    SimpleCell,
)
from nnx_migrate.nn.layers.dtypes import (
    canonicalize_dtype,
    keep_dtype,
    linen_dot_general,
    linen_promote_dtype,
    promote_dtype,
)
from nnx_migrate.nn.layers.linear import ConvLocal, Einsum, Embed, einsum_bias_shape
from nnx_migrate.nn.layers.normalization import (
    BatchNorm,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    RMSNorm,
)
from nnx_migrate.nn.layers.recurrent import (
    RNN,
    BatchApply,
    Bidirectional,
    Sequential,
    flip_sequences,
)
from nnx_migrate.nn.layers.stochastic import Dropout
from nnx_migrate.nn.lifts.remat import remat
from nnx_migrate.nn.lifts.scan import broadcast, scan
from nnx_migrate.nn.lifts.vmap import vmap
from nnx_migrate.nn.seeding.values import build
from nnx_migrate.nn.variables.partitioning import (
    with_logical_partitioning,
    with_partitioning,
)
from nnx_migrate.nn.variables.state import (
    get_variable,
    has_variable,
    is_initializing,
    is_mutable_collection,
    perturb,
    put_variable,
    sow,
)
from nnx_migrate.nn.variables.variables import (
    count_draw,
    is_moved_by_init,
    make_rng,
    merge_param,
    param,
    stream,
    variable,
    variable_type,
)
from nnx_migrate.numerics.axes import sorted_axes
from nnx_migrate.numerics.norms import (
    l2_normalize,
    mean_and_variance,
    positive_axes,
    squared_magnitude,
)

__all__ = [
    "EITHER",
    "RNN",
    "BatchApply",
    "BatchNorm",
    "Bidirectional",
    "ConvLSTMCell",
    "ConvLocal",
    "Dropout",
    "Einsum",
    "Embed",
    "GRUCell",
    "GroupNorm",
    "InstanceNorm",
    "LSTMCell",
    "LayerNorm",
    "LinenNames",
    "MGUCell",
    "MultiHeadAttention",
    "MultiHeadDotProductAttention",
    "OptimizedLSTMCell",
    "ProtocolMeta",
    "RMSNorm",
    "RNNCellBase",
    "SelfAttention",
    "Sequential",
    "SimpleCell",
    "Unbound",
    "abstract",
    "abstract_array",
    "abstractly",
    "apply",
    "as_field",
    "avg_pool",
    "bind",
    "broadcast",
    "build",
    "built_for",
    "call",
    "called_in_linen",
    "canonicalize_dtype",
    "class_decorator",
    "combine_masks",
    "constant",
    "copied",
    "count_draw",
    "dot_product_attention",
    "dot_product_attention_weights",
    "einsum_bias_shape",
    "factory",
    "flip_sequences",
    "freeze",
    "get_submodules",
    "get_variable",
    "has_variable",
    "is_initializing",
    "is_moved_by_init",
    "is_mutable_collection",
    "keep_dtype",
    "l2_normalize",
    "lazy_init",
    "lazy_variable",
    "linen_dot_general",
    "linen_name",
    "linen_promote_dtype",
    "make_attention_mask",
    "make_causal_mask",
    "make_rng",
    "makes_state",
    "max_pool",
    "mean_and_variance",
    "merge_param",
    "min_pool",
    "named",
    "named_in_linen",
    "order_in_linen",
    "out_features",
    "param",
    "perturb",
    "pool",
    "positive_axes",
    "promote_dtype",
    "put_variable",
    "read",
    "remat",
    "scan",
    "set_submodules",
    "sized",
    "sorted_axes",
    "sow",
    "squared_magnitude",
    "stream",
    "variable",
    "variable_type",
    "variables_of",
    "variables_with",
    "vmap",
    "with_fields",
    "with_logical_partitioning",
    "with_params",
    "with_partitioning",
]
