"""Names without an automatic rewrite: 8-bit matrix products, functions around modules, internals.

Each has a recipe. ``init``, ``apply`` and ``init_with_output`` here are the *functions* of
``flax.linen`` (``nn.apply(fn, module)``), not the methods of a module, which are call sites.

flax 0.12.8 and 0.12.12: linen/fp8_ops.py, linen/module.py, linen/summary.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from nnx_migrate.constructs.common.base import Refusal
from nnx_migrate.constructs.common.rules import Construct, Example, RefusalRule

_FP8 = "port the quantised product by hand; flax.nnx has no fp8 operations"
_NAMED_CALL = "drop it: NNX methods run under jax.named_scope only if you say so"
_SUBMODULE = "name what you need from it"

_RECIPES: Mapping[str, tuple[str, str]] = {
    **{
        name: (f"nn.{name}: 8-bit matrix products keep state that NNX layers do not have", _FP8)
        for name in (
            *("Fp8DirectDotGeneralOp", "Fp8DotGeneral", "Fp8DotGeneralOp", "Fp8Einsum"),
            *("NANOOFp8DotGeneralOp", "fp8_ops"),
        )
    },
    "apply": (
        "nn.apply, a function of a module's variables",
        "call the migrated module directly, or nnx.merge inside a function",
    ),
    "init": ("nn.init, variables of a function of a module", "construct the migrated module"),
    "init_with_output": (
        "nn.init_with_output",
        "construct the migrated module with rngs, then call it",
    ),
    "tabulate": ("nn.tabulate", "nnx.tabulate(module, *inputs)"),
    "summary": ("the module flax.linen.summary", "nnx.tabulate(module, *inputs)"),
    "intercept_methods": (
        "nn.intercept_methods",
        "NNX has no interceptors: subclass the module or wrap its methods",
    ),
    "compact_name_scope": (
        "nn.compact_name_scope",
        "build the submodules in __init__ under a submodule of that name",
    ),
    "named_call": ("nn.named_call", "decorate the function with jax.named_scope(name)"),
    "enable_named_call": ("nn.enable_named_call", _NAMED_CALL),
    "disable_named_call": ("nn.disable_named_call", _NAMED_CALL),
    "override_named_call": ("nn.override_named_call", _NAMED_CALL),
    **{
        name: (f"the module flax.linen.{name} used as a value", _SUBMODULE)
        for name in (
            *("activation", "attention", "batch_apply", "combinators", "dtypes", "linear"),
            *("module", "normalization", "pooling", "recurrent", "stochastic"),
        )
    },
    "kw_only_dataclasses": (
        "the module flax.linen.kw_only_dataclasses",
        "use dataclasses with kw_only=True",
    ),
}

CONSTRUCT = Construct(
    __doc__,
    rules=(
        RefusalRule(
            name="refused",
            refusals={
                "flax.linen": Refusal("the module flax.linen itself used as a value", _SUBMODULE),
                **{
                    f"flax.linen.{name}": Refusal(f"{reason}: not rewritten", recipe)
                    for name, (reason, recipe) in _RECIPES.items()
                },
            },
            example=Example(
                "nn.intercept_methods(f)", "refused: subclass the module or wrap its methods"
            ),
        ),
    ),
    lazy=(
        """
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        with nn.intercept_methods(lambda f, args, kwargs, context: f(*args, **kwargs)):
            return nn.Dense(8)(x)
""",
        """
class Model(nn.Module):
    @nn.compact
    @nn.compact_name_scope
    def __call__(self, x):
        return nn.Dense(8)(x)
""",
    ),
)
