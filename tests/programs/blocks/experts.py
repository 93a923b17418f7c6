"""A mixture of experts as large code writes it in Linen: scanned, rematerialised, losses sown."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

RESIDUAL = ("batch", "length", "act_embed")
ROUTED = ("act_exp", "batch_moe", "length", "act_mlp")
MIXED = ("act_exp", "batch_moe", "length", "act_embed")


def kernel(*names):
    """An initialiser of kernels whose dimensions have ``names``; the first counts experts."""
    fan_in = nn.initializers.variance_scaling(1.0, "fan_in", "normal", batch_axis=0)
    return nn.with_logical_partitioning(fan_in, names)


def project(pattern, x, weights, names, explicit):
    """An einsum sharded by ``names``: under Explicit axes it has to be told."""
    if explicit:
        spec = nn.logical_to_mesh_axes(names)
        return jnp.einsum(pattern, x, weights, out_sharding=spec)
    return nn.with_logical_constraint(jnp.einsum(pattern, x, weights), names)


class Router(nn.Module):
    """Weights of the chosen experts; zero for the others."""

    experts: int
    chosen: int
    explicit: bool

    @nn.compact
    def __call__(self, x):
        gate = self.param(
            "gate",
            nn.with_logical_partitioning(nn.initializers.normal(0.5), ("embed", None)),
            (x.shape[-1], self.experts),
        )
        logits = project("bld,de->ble", x, gate, ("batch", "length", None), self.explicit)
        chances = jax.nn.softmax(logits, axis=-1)
        best, places = jax.lax.top_k(chances, self.chosen)
        weights = (jax.nn.one_hot(places, self.experts) * best[..., None]).sum(-2)
        return weights / weights.sum(-1, keepdims=True), chances


class Experts(nn.Module):
    """Every expert sees every token; those not chosen weigh zero."""

    experts: int
    chosen: int
    width: int
    explicit: bool

    @nn.compact
    def __call__(self, x):
        weights, chances = Router(self.experts, self.chosen, self.explicit, name="router")(x)
        balance = self.experts * jnp.mean(chances * (weights > 0), axis=(0, 1)).sum()
        self.sow("intermediates", "balance", balance)
        features = x.shape[-1]
        wi = self.param("wi", kernel("exp", "embed", "mlp"), (self.experts, features, self.width))
        wo = self.param("wo", kernel("exp", "mlp", "embed"), (self.experts, self.width, features))
        hidden = nn.relu(project("bld,edf->eblf", x, wi, ROUTED, self.explicit))
        mixed = project("eblf,efd->ebld", hidden, wo, MIXED, self.explicit)
        return project("ebld,ble->bld", mixed, weights, RESIDUAL, self.explicit), balance


class Block(nn.Module):
    """The residual layer; the balance loss is carried as well as sown."""

    experts: int
    chosen: int
    width: int
    explicit: bool

    @nn.compact
    def __call__(self, carry, _):
        x, loss = carry
        x = nn.with_logical_constraint(x, RESIDUAL)
        experts = Experts(self.experts, self.chosen, self.width, self.explicit, name="moe")
        y, balance = experts(x)
        return (nn.with_logical_constraint(x + y, RESIDUAL), loss + balance), None


class Mixture(nn.Module):
    """Layers in one stack, each recomputed in the backward pass."""

    depth: int
    experts: int
    chosen: int
    width: int
    explicit: bool = False

    @nn.compact
    def __call__(self, x):
        stack = nn.scan(
            nn.remat(Block, prevent_cse=False),
            variable_axes={"params": 0, "intermediates": 0},
            split_rngs={"params": True},
            length=self.depth,
            metadata_params={nn.PARTITION_NAME: "layers"},
        )(self.experts, self.chosen, self.width, self.explicit, name="moe_layers")
        (x, loss), _ = stack((x, jnp.zeros((), x.dtype)), None)
        return x, loss
