"""Random modules with lifted transformations: scan, vmap, remat, jit, cond, switch, while_loop."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.generated.writing import Piece, Written, piece

_SPLIT = (
    '"params": True, "dropout": True, "noise": True, "gate": True',
    '"params": True, "dropout": False, "noise": True, "gate": False',
    '"params": False, "dropout": True, "noise": False, "gate": True',
    '"params": True, "dropout": True',
)
_STACKED = (
    '"params": 0, "state": 0, "cache": 0, "stats": 0, "batch_stats": 0',
    '"params": 0, "state": 0, "cache": 1, "stats": 1, "batch_stats": 0, "intermediates": 0, "losses": 0',
    '"params": -1, "state": 0, "cache": 0, "stats": -1, "batch_stats": -1, "losses": 0',
)


def lifted(n: str, t: str, known: Sequence[Written]) -> list[Piece]:
    """Lifts of classes written before."""
    return [one for cls in known for one in (*_plain(n, t, cls), *_stacking(n, cls))]


def _plain(n: str, t: str, one: Written) -> list[Piece]:
    args = f"x, {t}" if one.takes_train else "x"
    static = ", static_argnums=(2,)" if one.takes_train else ""
    call = [f"x = @{n}({args})"]
    sub = f"@{n} = {one.made}"
    return [
        piece(f"@{n} = nn.remat({one.name}{static})({one.args})", *call),
        piece(f"@{n} = nn.remat({one.name}{static}, prevent_cse=False)(flag=True)", *call, *call),
        piece(f"@{n} = nn.checkpoint({one.name}{static})(flag=not self.flag)", *call),
        piece(f"@{n} = nn.jit({one.name}{static})({one.args})", *call),
        piece(f"@{n} = nn.jit(nn.remat({one.name}{static}){static})({one.args})", *call),
        piece(
            [
                f"Layer = nn.remat({one.name}{static}) if self.flag else {one.name}",
                f"@{n} = Layer()",
            ],
            *call,
        ),
        piece(
            [
                f"Layer = {one.name}",
                "if self.flag:",
                f"    Layer = nn.remat(Layer{static})",
                f"@{n} = [Layer() for _ in range(2)]",
            ],
            f"for layer in @{n}:",
            f"    x = layer({args})",
        ),
        piece(sub, f"x = nn.remat(lambda m, x: m(x))(@{n}, x)"),
        piece(sub, f"x = nn.jit(lambda m, x: m(x))(@{n}, x)"),
        piece(sub, f"x = @{n}(x)", f"x = nn.cond(x.sum() > 0, lambda m, x: m(x), lambda m, x: -x, @{n}, x)"),
        piece(sub, f"x = nn.cond(x.sum() > 0, lambda m, x: m(x), lambda m, x: -m(x), @{n}, x)"),
        piece(sub, f"x = @{n}(x)", f"x = nn.switch(1, [lambda m, x: x, lambda m, x: m(m(x))], @{n}, x)"),
        piece(
            sub,
            f"x = @{n}(x)",
            "_, x = nn.while_loop(",
            "    lambda m, c: c[0] < 2,",
            "    lambda m, c: (c[0] + 1, m(c[1])),",
            f"    @{n}, (0, x),",
            '    carry_variables=["state", "cache", "stats", "batch_stats"],',
            '    split_rngs={"dropout": True, "noise": True, "gate": True},',
            ")",
        ),
    ]  # fmt: skip


def _stacking(n: str, one: Written) -> list[Piece]:
    found: list[Piece] = []
    for split in _SPLIT:
        for stacked in _STACKED:
            many = f"variable_axes={{{stacked}}}, split_rngs={{{split}}}"
            found += [
                piece(
                    f"@{n} = nn.vmap({one.name}, {many}, axis_size=2)({one.args})",
                    f"x = @{n}(jnp.stack([x, -x])).mean(0)",
                ),
                piece(
                    f"@{n} = nn.vmap({one.name}, {many}, in_axes=None, out_axes=1, axis_size=3)({one.args})",
                    f"x = @{n}(x).sum(1)",
                ),
                piece(
                    f"@{n} = nn.scan(Step{one.name}, {many}, length=3)()", f"x, _ = @{n}(x, None)"
                ),
                piece(
                    f"@{n} = nn.scan(nn.remat(Step{one.name}), {many}, length=2, unroll=2)()",
                    f"x, y = @{n}(x, None)",
                    "x = x + y.mean()",
                ),
                piece(
                    f"@{n} = nn.scan(Step{one.name}, {many}, reverse=True, in_axes=1, out_axes=1)()",
                    f"x, y = @{n}(x, jnp.stack([x, -x], 1))",
                    "x = x + y[:, 0]",
                ),
                piece(
                    f"@{n} = nn.scan(Step{one.name}, {many}, in_axes=nn.broadcast, length=2)()",
                    f"x, y = @{n}(x, x)",
                    "x = x + y[1]",
                ),
                piece(
                    f"@{n} = {one.made}",
                    f"x, _ = nn.scan(lambda m, c, _: (m(c), None), {many}, length=2)(@{n}, x, None)",
                ),
            ]
        shared = f'variable_broadcast="params", split_rngs={{{split.replace("True", "False", 1)}}}'
        kept = f'{shared}, variable_axes={{"state": 0, "cache": 0, "stats": 0, "batch_stats": 0}}'
        carried = f'{shared}, variable_carry=["state", "cache", "stats", "batch_stats"]'
        found += [
            piece(
                f"@{n} = nn.scan(Step{one.name}, {options}, in_axes=0, out_axes=0)()",
                f"x, y = @{n}(x, jnp.stack([x, -x]))",
                "x = x + y.sum(0)",
            )
            for options in (shared, kept, carried)
        ]
        alike = split.replace('"params": True', '"params": False')
        found += [
            piece(
                f"@{n} = nn.vmap({one.name}, variable_axes={{{axes}}}, split_rngs={{{alike}}})({one.args})",
                f"x = @{n}(jnp.stack([x, -x]))[0]",
            )
            for axes in ('"params": None', '"params": None, "state": 0, "cache": 0, "stats": None')
        ]
    return found


def cells(n: str, t: str, known: object = ()) -> list[Piece]:
    """Recurrent cells."""
    return [
        piece(f"@{n} = nn.RNN(nn.{cell}(4))", f"x = @{n}(x[None])[0]")
        for cell in ("SimpleCell", "LSTMCell", "GRUCell", "OptimizedLSTMCell", "MGUCell")
    ]


def step_around(one: Written) -> str:
    """A class that scans may run: ``one`` with a carry and an input."""
    return (
        f"class Step{one.name}(nn.Module):\n"
        "    flag: bool = True\n\n"
        "    @nn.compact\n"
        "    def __call__(self, c, a):\n"
        f"        c = {one.made}(c)\n"
        "        return c if a is None else c + a, c * 2\n\n\n"
    )
