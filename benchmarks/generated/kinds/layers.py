"""Linen's own layers, with statistics and without: each keeps the shape of ``x``, (3, 4)."""

from __future__ import annotations

from benchmarks.generated.writing import Piece, piece

_CELLS = ("SimpleCell", "LSTMCell", "GRUCell", "OptimizedLSTMCell", "MGUCell")


def plain(n: str, t: str, known: object = ()) -> list[Piece]:
    """Layers without state."""
    return [
        piece(f"@{n} = nn.Dense(4)", f"x = @{n}(x)"),
        piece(f"@{n} = nn.Dense(features=4, use_bias=False)", f"x = x + @{n}(x)"),
        piece(
            [f"@{n} = nn.Dense(8)", f"@{n}_out = nn.Dense(4, bias_init=nn.initializers.ones)"],
            f"x = @{n}_out(nn.relu(@{n}(x)))",
        ),
        piece(f"@{n} = nn.Dense(4, kernel_init=nn.initializers.normal(0.5))", f"x = nn.tanh(@{n}(x))"),
        piece(f"@{n} = nn.Dense(4, dtype=jnp.bfloat16)", f"x = @{n}(x).astype(jnp.float32)"),
        piece(f"@{n} = nn.Dense(12)", f"a, b, c = jnp.split(@{n}(x), 3, axis=-1)", "x = a * b + c"),
        piece(f"@{n} = nn.DenseGeneral((2, 2))", f"x = @{n}(x).reshape(3, 4)"),
        piece(
            [f"@{n} = nn.DenseGeneral((2, 3))", f"@{n}_out = nn.DenseGeneral(4, axis=(-2, -1))"],
            f"x = @{n}_out(@{n}(x))",
        ),
        piece(f'@{n} = nn.Einsum((4, 4), "...a,ab->...b", use_bias=False)', f"x = @{n}(x)"),
        piece(f"@{n} = nn.LayerNorm()", f"x = @{n}(x)"),
        piece(f"@{n} = nn.LayerNorm(epsilon=1e-3, use_bias=False)", f"x = x + @{n}(x)"),
        piece(f"@{n} = nn.RMSNorm()", f"x = @{n}(x)"),
        piece(f"@{n} = nn.GroupNorm(num_groups=2)", f"x = @{n}(x)"),
        piece(f"@{n} = nn.Conv(4, (3,))", f"x = @{n}(x)"),
        piece(f"@{n} = nn.Conv(4, kernel_size=(2,), padding='CAUSAL')", f"x = @{n}(x[None])[0]"),
        piece(f"@{n} = nn.ConvTranspose(4, (2,))", f"x = @{n}(x[None])[0]"),
        piece(f"@{n} = nn.PReLU()", f"x = @{n}(x)"),
        piece(f"@{n} = nn.Embed(5, 4)", f"x = x + @{n}(jnp.argmax(x, axis=-1))"),
        piece(
            f"@{n} = nn.Embed(num_embeddings=4, features=4)",
            f"x = @{n}.attend(x + @{n}(jnp.argmax(x, -1)))",
        ),
        piece(f"@{n} = nn.MultiHeadDotProductAttention(num_heads=2)", f"x = @{n}(x[None], x[None])[0]"),
        piece(
            f"@{n} = nn.MultiHeadDotProductAttention(2, qkv_features=8, out_features=4)",
            f"x = @{n}(x[None], mask=nn.make_causal_mask(jnp.ones((1, 3))))[0]",
        ),
        piece("", "x = nn.softmax(nn.gelu(x))"),
        piece("", "x = nn.avg_pool(x[None], (3,), (1,), 'SAME')[0]"),
    ]  # fmt: skip


def recurrent(n: str, t: str, known: object = ()) -> list[Piece]:
    """Cells, alone and in loops over time."""
    cells = [
        made
        for cell in _CELLS
        for made in (
            piece(f"@{n} = nn.RNN(nn.{cell}(4))", f"x = @{n}(x[None])[0]"),
            piece(
                f"@{n} = nn.{cell}(features=4)",
                f"carry = @{n}.initialize_carry(jax.random.key(0), x.shape)",
                f"carry, x = @{n}(carry, x)",
            ),
        )
    ]
    return [
        *cells,
        piece(
            f"@{n} = nn.RNN(nn.GRUCell(4), return_carry=True, reverse=True, keep_order=True)",
            f"_, y = @{n}(x[None])",
            "x = y[0]",
        ),
        piece(
            f"@{n} = nn.Bidirectional(nn.RNN(nn.SimpleCell(2)), nn.RNN(nn.SimpleCell(2)))",
            f"x = @{n}(x[None])[0]",
        ),
        piece(
            f"@{n} = nn.GRUCell(4)",
            "carry = jnp.zeros_like(x)",
            "for _ in range(2):",
            f"    carry, _ = @{n}(carry, x)",
            "x = carry",
        ),
    ]


def normalised(n: str, t: str, known: object = ()) -> list[Piece]:
    """Layers with statistics."""
    return [
        piece(f"@{n} = nn.BatchNorm(use_running_average=not self.flag)", f"x = @{n}(x)"),
        piece(f"@{n} = nn.BatchNorm(momentum=0.5)", f"x = @{n}(x, use_running_average=not {t})"),
        piece(
            f"@{n} = nn.BatchNorm(use_running_average=False, use_bias=False)", f"x = @{n}(@{n}(x))"
        ),
        piece(f"@{n} = nn.BatchNorm(use_running_average=None)", f"x = @{n}(x, not {t})"),
        piece(
            f"@{n} = partial(nn.BatchNorm, momentum=0.9)(use_scale=False)",
            f"x = nn.relu(@{n}(x, use_running_average=not {t}))",
        ),
        piece(
            f"@{n} = nn.SpectralNorm(nn.Dense(4))",
            f"x = @{n}(x, update_stats={t})",
        ),
        piece(f"@{n} = nn.WeightNorm(nn.Dense(4))", f"x = @{n}(x)"),
    ]
