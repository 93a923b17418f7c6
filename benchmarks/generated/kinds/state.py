"""Random modules with variables of several collections, statistics, and values sown."""

from __future__ import annotations

from benchmarks.generated.writing import Piece, piece


def variables(n: str, t: str, known: object = ()) -> list[Piece]:
    """Counters, means and caches; ``n`` is new, ``t`` the text of a truth."""
    count = f'@{n} = self.variable("state", "{n}", jnp.zeros, ())'
    mean = f'@{n} = self.variable("stats", "{n}_mean", lambda: jnp.ones((1, 4)))'
    cache = f'@{n} = self.variable("cache", "{n}", jnp.zeros, (3, 4), jnp.float32)'
    param = f'@{n} = self.param("{n}", nn.initializers.normal(1.0), (1, 4))'
    return [
        piece(count, f"@{n}.value = @{n}.value + 1", f"x = x + @{n}.value"),
        piece(count, f"@{n}.value += x.sum()", f"x = x * jnp.cos(@{n}.value)"),
        piece(count, f"x = x + @{n}.value", f"@{n}.value = x.mean()"),
        piece(
            count,
            "if not self.is_initializing():",
            f"    @{n}.value = @{n}.value + 2.0",
            f"x = x * (1 + @{n}.value)",
        ),
        piece(
            count,
            'if self.is_mutable_collection("state"):',
            f"    @{n}.value = @{n}.value + x.mean()",
            f"x = x - @{n}.value",
        ),
        piece(count, f"before = @{n}.value", f"@{n}.value = x.mean()", "x = x + before"),
        piece(
            mean,
            f"if {t}:",
            f"    @{n}.value = 0.9 * @{n}.value + 0.1 * x.mean(axis=0, keepdims=True)",
            f"x = x - @{n}.value",
        ),
        piece(
            mean,
            f"seen = x.mean(axis=0, keepdims=True) if {t} else @{n}.value",
            f"if {t} and not self.is_initializing():",
            f"    @{n}.value = 0.5 * @{n}.value + 0.5 * seen",
            "x = x - seen",
        ),
        piece(cache, f"x = x + @{n}.value", f"@{n}.value = x"),
        piece(cache, f"@{n}.value, x = x, x + @{n}.value"),
        piece(cache, f"@{n}.value = @{n}.value.at[0].set(x[1])", f"x = x + @{n}.value"),
        piece(
            "",
            f'ready = self.has_variable("cache", "{n}")',
            f'{n} = self.variable("cache", "{n}", jnp.zeros, x.shape, x.dtype)',
            "if ready:",
            f"    x = x + {n}.value",
            f"    {n}.value = x * 2",
            compact=True,
        ),
        piece(
            "",
            f'{n} = self.variable("state", "{n}", jnp.zeros_like, x)',
            f"{n}.value = {n}.value + jax.lax.stop_gradient(x)",
            f"x = jnp.tanh({n}.value) + x",
            compact=True,
        ),
        piece(
            count,
            f'self.put_variable("state", "{n}", self.get_variable("state", "{n}") + 1.0)',
            f'x = x + self.get_variable("state", "{n}")',
        ),
        piece(
            mean,
            f'if self.has_variable("stats", "{n}_mean"):',
            f"    x = x + @{n}.value",
        ),
        piece(param, f"x = x * @{n}"),
        piece(
            param,
            f'x = x + self.get_variable("params", "{n}")',
            f'if self.has_variable("params", "{n}"):',
            f"    x = x * @{n}",
        ),
    ]


def sown(n: str, t: str, known: object = ()) -> list[Piece]:
    """Values sown into collections, and perturbed."""
    return [
        piece("", f'self.sow("intermediates", "{n}", x)'),
        piece("", f'self.sow("losses", "{n}", x.mean())'),
        piece("", f'self.sow("losses", "{n}", x.mean())', "x = x * 2", f'self.sow("losses", "{n}", x.mean())'),
        piece("", f'self.sow("losses", "{n}", x.sum(), reduce_fn=lambda a, b: a + b, init_fn=lambda: 0.0)'),
        piece(
            "",
            f'self.sow("intermediates", "{n}", x, reduce_fn=lambda old, new: new, init_fn=lambda: jnp.zeros((3, 4)))',
        ),
        piece("", f"if {t}:", f'    self.sow("losses", "{n}", (x ** 2).sum())'),
        piece("", f'if self.sow("losses", "{n}", x.max()):', "    x = x + 1"),
        piece("", f'x = self.perturb("{n}", x)'),
        piece("", f'x = self.perturb("{n}", x, collection="perturbations") * 2'),
    ]  # fmt: skip
