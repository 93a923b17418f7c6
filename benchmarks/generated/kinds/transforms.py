"""Lifts that few programs use: gradients, custom rules, mapped variables, loops of layers."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.generated.writing import Piece, Written, piece

ROUNDED = """\
def rounded(f, x):
    def run(mdl, x):
        return nn.vjp(f, mdl, x)

    def backward(vjp_fn, y_t):
        params_t, x_t = vjp_fn(y_t)
        return jax.tree.map(jnp.sign, params_t), x_t

    return nn.custom_vjp(f, forward_fn=run, backward_fn=backward)


"""


def transformed(n: str, t: str, known: Sequence[Written]) -> list[Piece]:
    """Of a Dense layer, and of classes written before."""
    found = [one for cls in known for one in _of(n, cls)]
    double = "lambda tree: jax.tree.map(lambda v: 2 * v, tree)"
    return [
        *found,
        piece(f"@{n} = nn.map_variables(nn.Dense, 'params', {double}, init=True)(4)", f"x = @{n}(x)"),
        piece(f"@{n} = nn.Dense(4)", f"x = rounded(lambda m, v: m(v), x)(@{n}, x)", top=[ROUNDED]),
        piece(f"@{n} = nn.Dense(4)", f"y, back = nn.vjp(lambda m, v: m(v), @{n}, x)", "x = y + back(y)[1]"),
        piece(
            f"@{n} = nn.Dense(4)",
            f"x = @{n}(x)",
            f"y, t_ = nn.jvp(lambda m, v: m(v), @{n}, (x,), (jnp.ones_like(x),), variable_tangents={{}})",
            "x = y + t_",
        ),
        piece(f"@{n} = nn.remat_scan(nn.Dense, lengths=(2, 2))(4)", f"x = @{n}(x)"),
        piece(
            f"@{n} = nn.Dense(4)",
            f"x = @{n}(x)",
            f"x = nn.jit(lambda m, v: m(v) * 2)(@{n}, x)",
        ),
        piece(
            f"@{n} = nn.add_metadata_axis(nn.Dense, variable_axes={{'params': 0}}, metadata_params={{nn.PARTITION_NAME: 'layers'}})(4)",
            f"x = @{n}(x)",
        ),
        piece(f"@{n} = nn.remat(nn.Dense, policy=jax.checkpoint_policies.dots_saveable)(4)", f"x = @{n}(x)"),
    ]  # fmt: skip


def _of(n: str, one: Written) -> list[Piece]:
    made = one.made
    return [
        piece(f"@{n} = nn.map_variables({one.name}, 'params', init=True)({one.args})", f"x = @{n}(x)"),
        piece(f"@{n} = {made}", f"x = @{n}(x)", f"x = x + nn.vjp(lambda m, v: m(v), @{n}, x)[0]"),
        piece(f"@{n} = {made}", f"x = nn.remat(type(@{n}).__call__)(@{n}, x)"),
        piece(f"@{n} = nn.fold_rngs({one.name})({one.args})", f"x = @{n}(x)"),
        piece(f"@{n} = nn.remat({one.name}, methods=['__call__', 'turned'])({one.args})", f"x = @{n}.turned(x)"),
    ]  # fmt: skip
