"""Parameters with axis names, and constraints on values; no mesh is set."""

from __future__ import annotations

from benchmarks.generated.writing import Piece, piece


def annotated(n: str, t: str, known: object = ()) -> list[Piece]:
    """Logical and mesh axis names, on layers and on parameters of one's own."""
    logical = 'nn.with_logical_partitioning(nn.initializers.lecun_normal(), ("embed", "mlp"))'
    mesh = 'nn.with_partitioning(nn.initializers.normal(0.5), (None, "model"))'
    bias = 'nn.with_partitioning(nn.initializers.zeros_init(), ("model",))'
    return [
        piece(f"@{n} = nn.Dense(4, kernel_init={logical})", f"x = @{n}(x)"),
        piece(f"@{n} = nn.Dense(4, kernel_init={mesh}, bias_init={bias})", f"x = @{n}(x)"),
        piece(f"@{n} = self.param('{n}', {logical}, (4, 4))", f"x = x @ @{n}"),
        piece(f"@{n} = self.param('{n}', {mesh}, (4, 4), jnp.float32)", f"x = x @ @{n}.T"),
        piece(
            f"@{n} = nn.LayerNorm(scale_init=nn.with_logical_partitioning(nn.initializers.ones, ('embed',)))",
            f"x = @{n}(x)",
        ),
        piece("", "x = nn.with_logical_constraint(x, ('batch', 'embed'))"),
        piece(
            f"@{n} = nn.Embed(5, 4, embedding_init=nn.with_logical_partitioning(nn.initializers.normal(1.0), ('vocab', 'embed')))",
            f"x = x + @{n}(jnp.argmax(x, -1))",
        ),
        piece(
            f"@{n} = self.variable('state', '{n}', nn.with_partitioning(nn.initializers.zeros, (None, 'model')), None, (3, 4))",
            f"x = x + @{n}.value",
            f"@{n}.value = x",
        ),
        piece(
            f"@{n} = nn.vmap(nn.Dense, in_axes=None, variable_axes={{'params': 0}}, split_rngs={{'params': True}}, axis_size=2, metadata_params={{nn.PARTITION_NAME: 'layers'}})(4, kernel_init={logical})",
            f"x = @{n}(x).sum(0)",
        ),
    ]  # fmt: skip
