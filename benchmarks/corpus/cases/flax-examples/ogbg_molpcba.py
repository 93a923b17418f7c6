"""The graph network of flax's ogbg_molpcba example, on two small graphs, dropout on."""

import numpy as np

CASE = {"rngs": {"dropout": 4}}


def linen():
    import models

    return models.GraphNet(
        latent_size=12,
        num_mlp_layers=2,
        message_passing_steps=2,
        output_globals_size=5,
        dropout_rate=0.1,
        deterministic=False,
    )


def inputs():
    import jraph

    generator = np.random.default_rng(18)
    return (
        jraph.GraphsTuple(
            nodes=generator.normal(size=(7, 9)).astype(np.float32),
            edges=generator.normal(size=(8, 4)).astype(np.float32),
            globals=generator.normal(size=(2, 3)).astype(np.float32),
            senders=np.array([0, 1, 2, 0, 3, 4, 5, 6], np.int32),
            receivers=np.array([1, 2, 0, 2, 4, 5, 6, 3], np.int32),
            n_node=np.array([3, 4], np.int32),
            n_edge=np.array([4, 4], np.int32),
        ),
    )
