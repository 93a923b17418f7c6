"""Random modules that draw keys: dropout, several streams, variables that start from a key."""

from __future__ import annotations

from benchmarks.generated.writing import Piece, piece

STREAMS = ("dropout", "noise", "gate")


def dropouts(n: str, t: str, known: object = ()) -> list[Piece]:
    """Dropout in all its spellings."""
    return [
        piece(f"@{n} = nn.Dropout(0.5, deterministic=not self.flag)", f"x = @{n}(x)"),
        piece(f"@{n} = nn.Dropout(0.5, deterministic=False)", f"x = @{n}(@{n}(x) + 1)"),
        piece(f"@{n} = nn.Dropout(0.5)", f"x = @{n}(x, deterministic=not {t})"),
        piece(f"@{n} = nn.Dropout(rate=0.5)", f"x = @{n}(x, not {t})", f"x = @{n}(x, False)"),
        piece(
            f'@{n} = nn.Dropout(0.5, rng_collection="noise")',
            f"x = x - @{n}(x, deterministic=False)",
        ),
        piece(f"@{n} = nn.Dropout(0.3, broadcast_dims=(0,), deterministic=False)", f"x = @{n}(x)"),
        piece(
            f"@{n} = nn.Dropout(0.5)",
            f'x = @{n}(x, deterministic=False, rng=self.make_rng("gate"))',
        ),
        piece(
            f"@{n} = nn.MultiHeadDotProductAttention(2, dropout_rate=0.5, deterministic=not self.flag)",
            f"x = @{n}(x, x)",
        ),
        piece(
            f"@{n} = nn.MultiHeadDotProductAttention(2, dropout_rate=0.5)",
            f"x = x + @{n}(x, x, deterministic=not {t})",
        ),
        piece(
            f"@{n} = [nn.Dropout(0.5, deterministic=not self.flag) for _ in range(2)]",
            f"for drop in @{n}:",
            "    x = drop(x)",
        ),
        piece(
            f"@{n} = nn.Sequential([nn.Dense(4), nn.Dropout(0.5, deterministic=False)])",
            f"x = @{n}(x)",
        ),
        piece("", "x = nn.Dropout(0.5, deterministic=False)(nn.Dense(4)(x))", compact=True),
    ]


def keys(n: str, t: str, known: object = ()) -> list[Piece]:
    """Keys of several streams."""
    noise = 'jax.random.normal(self.make_rng("noise"), x.shape)'
    return [
        piece("", f"x = x + {noise}"),
        piece("", f"x = x + {noise} - {noise}"),
        piece("", f"if {t}:", f"    x = x + {noise}"),
        piece("", "for _ in range(2):", f"    x = x * {noise}"),
        piece(
            "",
            'one, two = jax.random.split(self.make_rng("gate"))',
            "x = jnp.where(jax.random.bernoulli(one, 0.5, x.shape), x, jax.random.normal(two, x.shape))",
        ),
        piece(
            f'@{n} = self.variable("state", "{n}", lambda: jax.random.normal(self.make_rng("noise"), (1, 4)))',
            f"x = x + @{n}.value",
        ),
        piece(
            f'@{n} = self.variable("state", "{n}", jnp.zeros, (3, 4))',
            f"@{n}.value = @{n}.value + {noise}",
            f"x = x + @{n}.value",
        ),
        piece(
            f'@{n} = self.param("{n}", lambda key: jax.random.normal(key, (1, 4)))', f"x = x * @{n}"
        ),
        piece(
            "",
            f'x = x + jax.random.normal(self.make_rng("noise") if {t} else self.make_rng("gate"), x.shape)',
        ),
        piece("", 'x = x + jax.random.normal(self.make_rng("dropout"), x.shape)'),
        *(
            piece(
                "",
                f'key = self.make_rng("{stream}")',
                f'{n} = self.param("{n}", nn.initializers.normal(1.0), (1, 4))',
                f"x = x * {n} + jax.random.normal(key, x.shape)",
                compact=True,
            )
            for stream in ("params", "noise")
        ),
    ]
