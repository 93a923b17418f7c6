"""The CLIP text and image towers; attention dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 1}}


def linen():
    import jax.numpy as jnp
    from transformers import CLIPConfig, FlaxCLIPModel

    config = CLIPConfig(
        text_config={
            "vocab_size": 61,
            "hidden_size": 24,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 40,
            "max_position_embeddings": 32,
            "attention_dropout": 0.1,
            "eos_token_id": 3,
        },
        vision_config={
            "hidden_size": 20,
            "num_hidden_layers": 2,
            "num_attention_heads": 5,
            "intermediate_size": 44,
            "image_size": 24,
            "patch_size": 6,
            "attention_dropout": 0.1,
        },
        projection_dim=16,
    )
    return FlaxCLIPModel.module_class(config=config, dtype=jnp.float32)


def inputs():
    generator = np.random.default_rng(65)
    tokens = generator.integers(5, 61, (2, 9)).astype(np.int32)
    tokens[:, -1] = 3
    mask = np.ones((2, 9), np.int32)
    mask[1, 6:] = 0
    positions = np.broadcast_to(np.arange(9, dtype=np.int32), (2, 9))
    images = generator.normal(size=(3, 24, 24, 3)).astype(np.float32)
    return (tokens, images, mask, positions), {"deterministic": False}
