"""A decoder as large code writes it in Linen: scanned, rematerialised, with logical axis names."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

RESIDUAL = ("batch", "length", "act_embed")
HIDDEN = ("batch", "length", "act_mlp")
HEADS = ("batch", "length", "act_heads", "act_kv")


def kernel(*names):
    """An initialiser of kernels whose dimensions have ``names``."""
    return nn.with_logical_partitioning(nn.initializers.lecun_normal(), names)


def project(pattern, x, weights, names, explicit):
    """An einsum sharded by ``names``: under Explicit axes it has to be told."""
    if explicit:
        spec = nn.logical_to_mesh_axes(names)
        return jnp.einsum(pattern, x, weights, out_sharding=spec)
    return nn.with_logical_constraint(jnp.einsum(pattern, x, weights), names)


class RMSNorm(nn.Module):
    """Norm by the root mean square."""

    epsilon: float = 1e-6

    @nn.compact
    def __call__(self, x):
        scale = self.param(
            "scale", nn.with_logical_partitioning(nn.initializers.ones, ("norm",)), x.shape[-1:]
        )
        mean = jnp.mean(x * x, axis=-1, keepdims=True)
        return x * jax.lax.rsqrt(mean + self.epsilon) * scale[None, None]


class Attention(nn.Module):
    """Causal attention."""

    heads: int
    explicit: bool

    @nn.compact
    def __call__(self, x):
        width = x.shape[-1]
        inner = (width, self.heads, width // self.heads)
        into = ("embed", "heads", "kv")
        query = self.param("query", kernel(*into), inner)
        key = self.param("key", kernel(*into), inner)
        value = self.param("value", kernel(*into), inner)
        out = self.param("out", kernel("heads", "kv", "embed"), (*inner[1:], width))
        q, k, v = (
            project("bld,dhk->blhk", x, one, HEADS, self.explicit) for one in (query, key, value)
        )
        scores = jnp.einsum("bqhk,bshk->bhqs", q, k) / jnp.sqrt(inner[-1])
        length = x.shape[1]
        mask = jnp.tril(jnp.ones((length, length), bool))
        weights = jax.nn.softmax(jnp.where(mask[None, None], scores, -1e9), axis=-1)
        mixed = jnp.einsum("bhqs,bshk->bqhk", weights, v)
        return project("bqhk,hkd->bqd", mixed, out, RESIDUAL, self.explicit)


class Mlp(nn.Module):
    """Two kernels and a gate."""

    width: int
    explicit: bool

    @nn.compact
    def __call__(self, x):
        wi = self.param("wi", kernel("embed", "mlp"), (x.shape[-1], self.width))
        wo = self.param("wo", kernel("mlp", "embed"), (self.width, x.shape[-1]))
        hidden = nn.silu(project("bld,df->blf", x, wi, HIDDEN, self.explicit))
        return project("blf,fd->bld", hidden, wo, RESIDUAL, self.explicit)


class Block(nn.Module):
    """Attention and a feed-forward part, both residual."""

    heads: int
    width: int
    explicit: bool

    @nn.compact
    def __call__(self, x, _):
        x = nn.with_logical_constraint(x, RESIDUAL)
        x = x + Attention(self.heads, self.explicit, name="attention")(RMSNorm()(x))
        x = x + Mlp(self.width, self.explicit, name="mlp")(RMSNorm()(x))
        return nn.with_logical_constraint(x, RESIDUAL), None


class Decoder(nn.Module):
    """Layers in one stack, each recomputed in the backward pass."""

    depth: int
    heads: int
    width: int
    explicit: bool = False

    @nn.compact
    def __call__(self, x):
        block = nn.remat(
            Block,
            prevent_cse=False,
            policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
        )
        stack = nn.scan(
            block,
            variable_axes={"params": 1},
            split_rngs={"params": True},
            length=self.depth,
            metadata_params={nn.PARTITION_NAME: "layers"},
        )
        x, _ = stack(self.heads, self.width, self.explicit, name="layers")(x, None)
        return RMSNorm(name="norm")(x)
