"""Methods and attributes that every Linen module has, used on ``self`` or on a submodule.

What becomes what (``nnm`` is ``nnx_migrate.nn``; these ask Linen's questions by collection and name):

- ``self.sow``, ``self.perturb``, ``self.has_variable``, ``self.get_variable``, ``self.put_variable``,
  ``self.is_mutable_collection`` -> ``nnm.sow(self, ...)`` and so on. Handed on as values they make the class lazy, and so
  do questions for what is or may be a submodule's name: Linen has its variables there, as a dict.
- ``self.make_rng(name)`` -> ``self.<name>_rng()``, a stream that the module owns.
- ``self.is_initializing()`` -> ``nnm.is_initializing()`` in calls and ``True`` in ``__init__``.
- ``self.variables`` -> ``nnm.variables_of(self)``; ``self.child.variables["params"]["a"]["kernel"]`` ->
  ``self.child.a.kernel[...]``.
- ``self.apply(...)`` outside of the forward pass -> ``nnm.apply(self, ...)``.

What differs. An NNX module's state can always change: outside of ``nnm.apply(..., mutable=...)`` a
collection is mutable unless it is ``params``, or ``intermediates`` that nobody captures. Values sown are kept
under ``nnx.capture`` or ``nnm.apply(..., mutable=[collection])`` only. Perturbations are made by
``nnm.variables_of(model, *inputs)`` or ``nnm.lazy_init(model, *inputs)``, as Linen's ``init`` makes them, or taken
from ``nnx.capture``. Variables that a call makes are new state: call the module once before it is split.

Everything else is refused, with the recipe that the finding names: NNX modules have no name, path,
scope or parent, do not know which streams the caller has keys for, and are never unbound.

flax 0.12.8 and 0.12.12: linen/module.py, nnx/module.py (``sow``, ``perturb``, ``capture``).
"""

from __future__ import annotations

from collections.abc import Mapping

from nnx_migrate.constructs.common.base import Refusal
from nnx_migrate.constructs.common.rules import Construct, Example, RefusalRule

# Methods that a function of ``nnx_migrate.nn`` of the same name stands for, the module first.
CARRIED = frozenset(
    (
        *("get_variable", "has_variable", "is_mutable_collection"),
        *("perturb", "put_variable", "sow"),
    )
)

# Methods and attributes without a counterpart, with what to do instead.
RECIPES: Mapping[str, str] = {
    "apply": "call the module, or give it its parameters with nnm.apply outside of the forward pass",
    "bind": "NNX modules hold their state: use the module itself",
    "unbind": "use nnx.split outside of the loop and nnx.merge(..., copy=True) inside",
    "clone": "use nnx.clone, or build a second module in __init__",
    "copy": "use nnx.clone, or build a second module in __init__",
    "init": "construct the module",
    "init_with_output": "construct the module and call it",
    "lazy_init": "construct the module",
    "tabulate": "use nnx.tabulate",
    "has_rng": "nnx.Rngs has every stream that its default key seeds: pass a flag as a field",
    "module_paths": "use nnx.iter_modules",
    "scope": "NNX has no scopes: hold the submodule as an attribute",
    "path": "NNX modules do not know their path: pass it as a field",
    "parent": "NNX modules do not know their parent: pass what is needed",
    "name": "NNX modules do not know their name: pass it as a field",
}
# What only ``self`` has a rule for; a submodule's is refused as well.
OWN_ONLY: Mapping[str, str] = {
    "param": "make the parameter in the submodule's own class",
    "variable": "make the variable in the submodule's own class",
    "make_rng": "draw the key in the submodule's own class, or from a stream of this one",
    "is_initializing": "ask self.is_initializing()",
}


def refusal(name: str) -> Refusal:
    """Why ``self.<name>`` stays."""
    return Refusal(f"self.{name} has no NNX counterpart", RECIPES[name])


CONSTRUCT = Construct(
    __doc__,
    rules=(
        RefusalRule(
            name="module-methods",
            refusals={
                f"flax.linen.Module.{name}": Refusal(
                    f"nn.Module.{name} has no NNX counterpart", recipe
                )
                for name, recipe in RECIPES.items()
            },
            example=Example(
                'self.put_variable("state", "x", x)', 'nnm.put_variable(self, "state", "x", x)'
            ),
        ),
    ),
    example="""
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        bias = self.param("bias", nn.initializers.normal(1.0), (1, 8))
        steps = self.variable("counts", "steps", lambda: jnp.zeros((), jnp.int32))
        if not self.is_initializing():
            steps.value = steps.value + 1
        self.sow("intermediates", "inputs", x)
        return nn.Dense(8)(x) + bias
""",
    inputs="jnp.ones((2, 8))",
    lazy=(
        """
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(8 if self.name == "wide" else 4)(x)
""",
        """
class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(8 if self.has_rng("dropout") else 4)(x)
""",
    ),
)
