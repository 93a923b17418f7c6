"""Locals of lifted lazy classes that ``__init__`` and the call both keep: making them runs code of the program."""

from __future__ import annotations

from tests.rewrite.projects import LINEN
from tests.rewrite.running import net_alike

SOURCE = (
    LINEN
    + """\
import jax
import jax.numpy as jnp

POLICIES = []


def policy(kind):
    POLICIES.append(kind)
    return jax.checkpoint_policies.nothing_saveable


class Inner(nn.Module):
    width: int

    @nn.compact
    def __call__(self, carry, _):
        scale = self.param("scale", lambda key: jax.random.normal(key, carry[0].shape))
        return (carry[0] * scale + nn.Dense(self.width)(carry[0]), carry[1]), None


class Net(nn.Module):
    kind: str = "a"

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(4)(x)
        block = nn.remat(Inner, prevent_cse=False, policy=policy(self.kind))
        names = {nn.PARTITION_NAME: "layers"}
        block = nn.scan(
            block,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=2,
            metadata_params=names,
        )
        (x, _), _ = block(4, name="layers")((x, jnp.zeros(())), None)
        return nn.Dense(1)(x)
"""
)


def test_a_lift_with_a_policy_of_the_program_is_explicit_around_a_lazy_class() -> None:
    assert net_alike(SOURCE, "jnp.ones((2, 3))") == {"m.Inner": "lazy", "m.Net": "explicit"}
