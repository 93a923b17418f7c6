"""Equivariant self-attention over the edges of a graph."""

import numpy as np

CASE = {}


def linen():
    import e3x

    return e3x.nn.SelfAttention(num_heads=2)


def inputs():
    generator = np.random.default_rng(825)
    nodes = generator.normal(size=(5, 1, 4, 6)).astype(np.float32)
    basis = generator.normal(size=(7, 1, 4, 3)).astype(np.float32)
    source = np.array([0, 1, 2, 3, 4, 0, 2], np.int32)
    target = np.array([1, 2, 3, 4, 0, 2, 0], np.int32)
    return (nodes, basis), {"dst_idx": target, "src_idx": source, "num_segments": 5}
