"""vmap of a module class: ensembles, and modules mapped over a batch axis.

``nn.vmap(Critic, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=None,
axis_size=n)(fields...)`` becomes ``nnm.vmap(Critic, ...)(fields..., in_features=..., rngs=rngs)``: a
class ``VmapCritic`` whose instances hold one array per parameter for all members, under Linen's paths
and with Linen's shapes, and whose call is one ``jax.vmap``. The options are Linen's and mean the
same; with ``variable_axes={"params": None}`` all lanes share the parameters.

Refused: functions and layers of Linen's in place of the class, ``methods=``, stacked variables without ``axis_size=`` (NNX builds them before it sees the inputs), ``metadata_params`` other than the axis's
name, options the text does not show.

flax 0.12.8 and 0.12.12: linen/transforms.py, core/lift.py.
"""

from __future__ import annotations

from nnx_migrate.constructs.common.base import Code, LayerCall, Refusal, linen
from nnx_migrate.constructs.common.lifts import (
    ArgumentValues,
    convert_lift,
    is_shared,
    named_from_the_end,
    no_named_class,
    no_size,
    other_metadata,
    reference,
)
from nnx_migrate.constructs.common.rules import CallRule, Construct, Example

_KEPT = (
    *("variable_axes", "split_rngs", "in_axes", "out_axes", "axis_size", "axis_name"),
    *("spmd_axis_name", "metadata_params"),
)
_BY_HAND = "nnx.vmap the constructor over split rngs, then a function of the module (nnx.StateAxes)"


def convert(call: LayerCall) -> Code | Refusal:
    """``nnm.vmap(Class, variable_axes=..., ...)``."""
    return convert_lift("vmap", call, ("target", *_KEPT, "methods"), _KEPT, option_refusal)


def option_refusal(values: ArgumentValues) -> Refusal | None:
    """Why the given options cannot be carried over."""
    refusal = no_named_class("vmap", values, _BY_HAND)
    if refusal is None and not is_shared(values.get("variable_axes")):
        refusal = no_size("vmap", "axis_size", "lanes", values)
    return refusal or other_metadata("vmap", values) or named_from_the_end("vmap", values)


CONSTRUCT = Construct(
    __doc__,
    rules=(
        CallRule(
            name="vmap",
            symbols=linen("vmap"),
            example=Example(
                "nn.vmap(Critic, variable_axes={'params': 0}, in_axes=None, axis_size=2)(8)",
                "nnm.vmap(Critic, variable_axes={'params': 0}, in_axes=None, axis_size=2)"
                "(8, in_features=..., rngs=rngs)",
            ),
            convert=convert,
            reference=reference,
        ),
    ),
    example="""
class Critic(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.relu(nn.Dense(8)(x)))


class Model(nn.Module):
    members: int = 2

    @nn.compact
    def __call__(self, x):
        ensemble = nn.vmap(
            Critic,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            in_axes=None,
            axis_size=self.members,
        )
        return ensemble()(x)
""",
    inputs="jnp.ones((2, 8))",
    lazy=(
        """
class Critic(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(x)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        ensemble = nn.vmap(
            Critic,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            axis_size=2,
            metadata_params={"is_ensemble": True},
        )
        return ensemble()(x)
""",
    ),
)
