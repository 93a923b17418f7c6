"""Random modules with variables that start from others, and moving averages of them."""

from __future__ import annotations

from benchmarks.generated.writing import Piece, piece


def codebooks(n: str, t: str, known: object = ()) -> list[Piece]:
    """Codebooks and averages of parameters; ``n`` is new, ``t`` the text of a truth."""
    code = f'@{n} = self.param("{n}", nn.initializers.normal(1.0), (5, 4))'
    drawn = f'@{n} = self.variable("state", "{n}", lambda: jax.random.normal(self.make_rng("params"), (5, 4)))'
    counts = f'@{n}_counts = self.variable("state", "{n}_counts", jnp.ones, (5,))'
    sums = f'@{n}_sums = self.variable("state", "{n}_sums", lambda: @{n}.value * 1.0)'
    weighted = f'@{n}_sums = self.variable("state", "{n}_sums", lambda: @{n}.value * @{n}_counts.value[:, None])'
    of_code = f'@{n}_sums = self.variable("state", "{n}_sums", lambda: @{n} * 1.0)'
    average = f'@{n}_mean = self.variable("stats", "{n}_mean", lambda: @{n})'
    near = "near = jnp.argmin(((x[:, None] - {}) ** 2).sum(-1), -1)"
    summed = "jnp.zeros((5, 4)).at[near].add(jax.lax.stop_gradient(x))"
    update = [
        f"    @{n}_counts.value = 0.9 * @{n}_counts.value + 0.1 * jnp.bincount(near, length=5)",
        f"    @{n}_sums.value = 0.9 * @{n}_sums.value + 0.1 * {summed}",
        f"    @{n}.value = @{n}_sums.value / (@{n}_counts.value[:, None] + 1e-3)",
    ]
    tree = f'@{n}_tree = self.variable("state", "{n}_tree", lambda: {{"codes": @{n}, "steps": jnp.zeros(())}})'
    return [
        piece([drawn, sums], near.format(f"@{n}.value"), f"x = x + @{n}_sums.value[near]"),
        piece(
            [drawn, counts, sums],
            near.format(f"@{n}.value"),
            f"if {t}:",
            *update,
            f"x = x + jax.lax.stop_gradient(@{n}.value[near] - x)",
        ),
        piece(
            [drawn, counts, weighted],
            near.format(f"@{n}.value"),
            f"if {t} and not self.is_initializing():",
            *update,
            f"x = x + @{n}.value[near]",
        ),
        piece(
            [code, of_code],
            near.format(f"@{n}"),
            f"if {t}:",
            f"    @{n}_sums.value = 0.9 * @{n}_sums.value + 0.1 * {summed}",
            f"x = x + @{n}[near] + @{n}_sums.value[near]",
        ),
        piece(
            [code, average],
            f"if {t} and not self.is_initializing():",
            f"    @{n}_mean.value = 0.5 * @{n}_mean.value + 0.5 * @{n}",
            f"x = x * (@{n}[:3] - 2 * @{n}_mean.value[:3])",
        ),
        piece(
            [code, tree],
            f"steps = @{n}_tree.value['steps']",
            f"@{n}_tree.value = {{'codes': @{n}, 'steps': steps + 1}}",
            f"x = x + @{n}_tree.value['codes'][0] * steps",
        ),
        piece(
            [drawn, f'@{n}_first = self.variable("state", "{n}_first", jnp.copy, @{n}.value)'],
            f"x = x + @{n}_first.value[1] - @{n}.value[2]",
        ),
    ]
