"""Ways to build: in loops, in functions, in place, under conditions; and ways to call."""

from __future__ import annotations

from benchmarks.generated.writing import Piece, piece

MLP = """\
def mlp(*widths, act=nn.relu):
    layers = []
    for width in widths[:-1]:
        layers += [nn.Dense(width), act]
    return nn.Sequential([*layers, nn.Dense(widths[-1])])


"""
MADE = "def {}_made(self, n):\n    return nn.Dense(n, use_bias=self.flag)"
PROJECTED = """\
def projected(x, width, name=None):
    return nn.Dense(width, use_bias=False, name=name)(x)


"""


def placed(n: str, t: str, known: object = ()) -> list[Piece]:
    """Layers built where a compact method calls them."""
    lines = [
        ["x = nn.Dense(4)(x)"],
        [f"x = nn.Dense(4, name='{n}_dense')(nn.LayerNorm()(x))"],
        ["x = x + nn.Dense(x.shape[-1])(nn.relu(nn.Dense(2 * x.shape[-1])(x)))"],
        ["x = nn.Sequential([nn.Dense(5), nn.relu, nn.Dense(4)])(x)"],
        ["x = sum(nn.Dense(4)(x) for _ in range(2))"],
        ["x = jnp.stack([nn.Dense(4)(x) for _ in range(2)]).mean(0)"],
        ["x = jnp.concatenate([nn.Dense(2)(x), nn.Dense(2)(x)], axis=-1)"],
        ["y = nn.Dense(4)(x) if self.flag else x", "x = x + y"],
        ["x = (nn.LayerNorm if self.flag else nn.RMSNorm)()(x)"],
        ["def block(z, width=4):", "    return nn.Dense(width)(z)", "x = block(block(x))"],
        ["block = lambda z: nn.Dense(4)(z)", "x = block(x) + block(x)"],
        ["dense = lambda n, **rest: nn.Dense(n, use_bias=False, **rest)", "x = dense(4)(dense(3)(x))"],
        ["def dense(n, bias=True):", "    return nn.Dense(n, use_bias=bias)", "x = dense(4, bias=False)(nn.relu(dense(x.shape[-1])(x)))"],
        ["parts = {k: nn.Dense(4) for k in ('p', 'q')}", "x = sum(part(x) for part in parts.values())"],
        [f"x = x + sum({{k: nn.Dense(4, name=f'{n}_{{k}}')(x) for k in ('p', 'q')}}.values())"],
        ["layer = nn.Dense(4)", "if self.flag:", "    layer = nn.LayerNorm()", "x = layer(x)"],
        ["for i in range(3):", "    if i % 2:", "        x = x + nn.Dense(4)(x)", "        continue", "    x = nn.LayerNorm()(x)"],
        ["for w in (3, 4, 5):", "    x = nn.Dense(w)(x)", "    if w == 4:", "        break"],
        ["options = dict(use_bias=False)", "x = nn.Dense(4, **options)(x)"],
        ["Narrow = partial(nn.Dense, use_bias=False)", "x = Narrow(4)(Narrow(3)(x))"],
        ["for i in range(2):", "    x = nn.Dense(4 if i else 3)(x)"],
        ["i = 0", "while i < 2:", "    x = nn.Dense(4)(x)", "    i += 1"],
        ["skips = []", "for _ in range(2):", "    x = nn.Dense(4)(x)", "    skips.append(x)", "x = sum(skips)"],
        ["if (y := nn.Dense(4)(x)).ndim == 2:", "    x = y"],
        ["dense = nn.Dense(4)", "if self.flag:", "    x = dense(x)", "x = dense(x)"],
        ["try:", "    x = nn.Dense(4)(x)", "finally:", "    y = x"],
        ["with jax.named_scope('part'):", "    x = nn.Dense(4)(x)"],
        ["q, k, v = (nn.Dense(4)(x) for _ in range(3))", "x = nn.softmax(q @ k.T) @ v"],
        ["x, y = nn.Dense(4)(x), nn.LayerNorm()(x)", "x = x - y"],
        ["x += nn.Dense(4)(x)"],
        ["y = 4", "for w in (3, 5):", "    x = nn.Dense(w)(x)", "x = nn.Dense(y)(x)"],
        ["for w, *skips in ((3, 4), (5, 6)):", "    x = nn.Dense(w + skips[0])(x)", "x = nn.Dense(4)(x)"],
        ["x = functools.reduce(lambda z, f: f(z), [nn.Dense(4), nn.relu, nn.LayerNorm()], x)"],
        ["class Inner(nn.Module):", "    @nn.compact", "    def __call__(self, x):", "        return nn.Dense(4)(x)", "x = Inner()(x)"],
        ["del_me = x", "x = nn.Dense(4)(del_me)", "del del_me"],
        ["assert x.shape[-1] == 4, x.shape", "batch, width = x.shape", "x = nn.Dense(width)(x.reshape(batch, width))"],
        [f"kernel = self.param('{n}_kernel', nn.initializers.lecun_normal(), (x.shape[-1], 4))", "x = jnp.dot(x, kernel)"],
        [f"kernel, bias = (self.param(f'{n}_{{k}}', nn.initializers.ones, (4,)) for k in 'ab')", "x = x * kernel + bias"],
        [f"w = self.param('{n}_w', lambda key, *shape: jax.random.uniform(key, shape), 4, x.shape[-1])", "x = x @ w"],
    ]  # fmt: skip
    return [
        *(piece("", *one, compact=True) for one in lines),
        piece("", f"x = self.{n}_made(4)(self.{n}_made(3)(x))", compact=True, methods=[MADE.format(n)]),
        piece("", "x = projected(x, 4)", compact=True, top=[PROJECTED]),
        piece("", f"x = projected(projected(x, 3, '{n}_a'), width=4)", compact=True, top=[PROJECTED]),
    ]  # fmt: skip


def gathered(n: str, t: str, known: object = ()) -> list[Piece]:
    """Layers kept in containers, built by functions, and found by name."""
    return [
        piece(f"@{n} = self.{n}_made(4)", f"x = @{n}(x)", methods=[MADE.format(n)]),
        piece(
            f"@{n} = {{k: nn.Dense(4) for k in ('p', 'q')}}",
            f"for part in @{n}.values():",
            "    x = part(x)",
        ),
        piece(f"@{n} = mlp(5, 4)", f"x = @{n}(x)", top=[MLP]),
        piece(f"@{n} = mlp(3, 3, 4, act=nn.tanh)", f"x = x + @{n}(x)", top=[MLP]),
        piece(
            f"@{n} = [nn.Dense(4), nn.LayerNorm(), nn.relu]",
            f"for layer in @{n}:",
            "    x = layer(x)",
        ),
        piece(
            f"@{n} = {{'a': nn.Dense(4), 'b': [nn.Dense(4), nn.Dense(4)]}}",
            f"x = @{n}['a'](x) + @{n}['b'][1](@{n}['b'][0](x))",
        ),
        piece(
            f"@{n} = (nn.Dense(6), nn.Dense(4))", f"first, second = @{n}", "x = second(first(x))"
        ),
        piece(
            ["found = []", "for i in range(2):", "    found.append(nn.Dense(4))", f"@{n} = found"],
            f"for i, layer in enumerate(@{n}):",
            "    x = layer(x) + i",
        ),
        piece(
            ["for i in range(2):", f"    setattr(self, f'{n}_{{i}}', nn.Dense(4))"],
            "for i in range(2):",
            f"    x = getattr(self, f'{n}_{{i}}')(x)",
            setup=True,
        ),
        piece(
            f"@{n} = nn.Sequential([nn.Dense(4), nn.Sequential([nn.LayerNorm(), nn.relu])])",
            f"x = @{n}(x)",
        ),
        piece(f"@{n} = nn.Dense(4)", f"x = (@{n} if self.flag else nn.relu)(x)"),
        piece(f"@{n} = nn.Dense(4)", f"x = jax.tree.map(@{n}, {{'a': x}})['a']"),
        piece(f"@{n} = nn.Dense(4)", f"run = @{n}", "x = run(run(x))"),
        piece(f"@{n} = nn.Dense(4)", f"x = list(map(@{n}, [x, -x]))[1]"),
        piece(
            [f"@{n} = nn.Dense(4) if self.flag else nn.LayerNorm()"],
            f"x = @{n}(x)",
        ),
        piece(
            [f"@{n} = [nn.Dense(4) if i % 2 else nn.RMSNorm() for i in range(3)]"],
            f"for layer in reversed(@{n}):",
            "    x = layer(x)",
        ),
    ]
