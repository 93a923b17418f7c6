"""The Griffin language model: a recurrent and a local attention block."""

import numpy as np

CASE = {}


def linen():
    from recurrentgemma.common import GriffinConfig, ScanType, TemporalBlockType
    from recurrentgemma.jax.griffin import Griffin

    return Griffin(
        GriffinConfig(
            vocab_size=61,
            width=32,
            mlp_expanded_width=40,
            num_heads=4,
            lru_width=20,
            block_types=(TemporalBlockType.RECURRENT, TemporalBlockType.ATTENTION),
            embeddings_scale_by_sqrt_dim=True,
            attention_window_size=6,
            logits_soft_cap=30.0,
            scan_type=ScanType.LINEAR_NATIVE,
        )
    )


def inputs():
    import jax.numpy as jnp

    generator = np.random.default_rng(299)
    tokens = generator.integers(1, 61, (2, 9)).astype(np.int32)
    positions = np.broadcast_to(np.arange(9, dtype=np.int32), (2, 9))
    return jnp.asarray(tokens), jnp.asarray(positions)
