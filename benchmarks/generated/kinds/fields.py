"""Fields of every kind: sizes, lists, dicts, functions, classes, configs, modules."""

from __future__ import annotations

from benchmarks.generated.writing import Piece, piece

CONFIG = """\
@dataclasses.dataclass(frozen=True)
class Config:
    width: int = 6
    bias: bool = True
    act: str = "relu"


"""
_ACTS = """\
ACTS = {"relu": nn.relu, "tanh": jnp.tanh, "gelu": nn.gelu}


"""


def sizes(n: str, t: str, known: object = ()) -> list[Piece]:
    """Numbers, and lists and dicts of them."""
    width = {"fields": ["width: int = 6"], "options": ["width=2", "width=5"]}
    many = {"fields": ["sizes: Sequence[int] = (5, 4)"], "options": ["sizes=(4,)", "sizes=[3, 4]"]}
    heads = {
        "fields": ['heads: Mapping[str, int] = dataclasses.field(default_factory=lambda: {"a": 4, "b": 4})'],
        "options": ['heads={"a": 4}'],
    }  # fmt: skip
    extra = {"fields": ["extra: Optional[int] = None"], "options": ["extra=3", "extra=None"]}
    return [
        piece(
            [f"@{n} = nn.Dense(self.width)", f"@{n}_out = nn.Dense(4)"],
            f"x = @{n}_out(nn.relu(@{n}(x)))",
            **width,
        ),
        piece(
            [f"@{n} = nn.Dense(2 * self.width, name='{n}_in')", f"@{n}_out = nn.Dense(4)"],
            f"y = @{n}(x)",
            f"x = @{n}_out(y[..., : self.width] * y[..., self.width :])",
            compact=True,
            **width,
        ),
        piece(
            f"@{n} = [nn.Dense(size) for size in self.sizes]",
            f"for layer in @{n}:",
            "    x = nn.relu(layer(x))",
            **many,
        ),
        piece(
            "",
            "for i, size in enumerate(self.sizes):",
            f"    x = nn.Dense(size, name=f'{n}_{{i}}')(x)",
            "    if i < len(self.sizes) - 1:",
            "        x = nn.relu(x)",
            compact=True,
            **many,
        ),
        piece(
            "",
            "*hidden, last = self.sizes",
            "for size in hidden:",
            "    x = nn.tanh(nn.Dense(size)(x))",
            "x = nn.Dense(last)(x)",
            compact=True,
            **many,
        ),
        piece(
            f"@{n} = nn.Sequential([nn.Dense(size) for size in self.sizes])",
            f"x = @{n}(x)",
            **many,
        ),
        piece(
            f"@{n} = tuple(nn.Dense(size) for size in self.sizes)",
            f"for layer, scale in zip(@{n}, (1.0, 0.5)):",
            "    x = layer(x) * scale",
            **(many | {"options": ()}),
        ),
        piece(
            f"@{n} = {{name: nn.Dense(size) for name, size in self.heads.items()}}",
            f"x = x + sum(@{n}[name](x) for name in self.heads)",
            **heads,
        ),
        piece(
            "",
            "for name, size in sorted(self.heads.items()):",
            f"    x = x + nn.Dense(size, name='{n}_' + name)(x)",
            compact=True,
            **heads,
        ),
        piece(
            [
                "if self.extra is not None:",
                f"    @{n} = nn.Dense(self.extra)",
                f"    @{n}_out = nn.Dense(4)",
            ],
            "if self.extra is not None:",
            f"    x = @{n}_out(@{n}(x))",
            **extra,
        ),
        piece(
            f"@{n} = nn.Dense(self.extra or 4)",
            f"x = x + @{n}(x).mean(-1, keepdims=True)",
            **extra,
        ),
    ]


def functions(n: str, t: str, known: object = ()) -> list[Piece]:
    """Functions, classes and dtypes as fields."""
    norm = {
        "fields": ["norm: Any = nn.LayerNorm"],
        "options": ["norm=nn.RMSNorm", "norm=partial(nn.GroupNorm, num_groups=2)", "norm=nn.LayerNorm"],
    }  # fmt: skip
    act = {
        "fields": ["act: Callable = nn.relu"],
        "options": ["act=jnp.tanh", "act=lambda v: v * 2", "act=partial(nn.leaky_relu, negative_slope=0.2)"],
    }  # fmt: skip
    make = {
        "fields": ["make: Callable[..., nn.Module] = nn.Dense"],
        "options": ["make=partial(nn.Dense, use_bias=False)"],
    }
    init = {
        "fields": ["kernel_init: Callable = nn.initializers.lecun_normal()"],
        "options": ["kernel_init=nn.initializers.normal(0.1)", "kernel_init=nn.initializers.orthogonal()"],
    }  # fmt: skip
    dtype = {"fields": ["dtype: Any = jnp.float32"], "options": ["dtype=jnp.bfloat16"]}
    return [
        piece(f"@{n} = self.norm()", f"x = @{n}(x)", **norm),
        piece(f"@{n} = [self.norm() for _ in range(2)]", f"x = @{n}[0](x) + @{n}[1](x)", **norm),
        piece(
            "", f"x = x + self.norm(name='{n}_norm')(nn.Dense(4)(x))", compact=True, **norm
        ),
        piece(
            [f"norm_{n} = partial(self.norm, dtype=jnp.float32)", f"@{n} = norm_{n}()"],
            f"x = @{n}(x)",
            fields=norm["fields"],
        ),
        piece(f"@{n} = nn.Dense(4)", f"x = self.act(@{n}(x))", **act),
        piece(f"@{n} = nn.Sequential([nn.Dense(4), self.act])", f"x = @{n}(x)", **act),
        piece(f"@{n} = self.make(4)", f"x = @{n}(x)", **make),
        piece(
            [f"make_{n} = partial(self.make, features=4)", f"@{n} = [make_{n}(), make_{n}()]"],
            f"x = @{n}[1](self.act(@{n}[0](x)))",
            fields=[*make["fields"], *act["fields"]],
            options=make["options"],
        ),
        piece(f"@{n} = nn.Dense(4, kernel_init=self.kernel_init)", f"x = @{n}(x)", **init),
        piece(
            f"@{n} = self.param('{n}', self.kernel_init, (4, 4))", f"x = x @ @{n}", **init
        ),
        piece(
            f"@{n} = nn.Dense(4, dtype=self.dtype, param_dtype=jnp.float32)",
            f"x = jnp.asarray(@{n}(x), jnp.float32)",
            **dtype,
        ),
        piece(
            f"@{n} = nn.LayerNorm(dtype=self.dtype)", f"x = @{n}(x).astype(x.dtype)", **dtype
        ),
    ]  # fmt: skip


def configs(n: str, t: str, known: object = ()) -> list[Piece]:
    """Config objects, tables, class attributes, properties."""
    config = {
        "fields": ["config: Config = Config()"],
        "options": ["config=Config(width=3)", 'config=Config(bias=False, act="tanh")'],
        "top": [CONFIG],
    }
    table = 'LAYERS = {"dense": partial(nn.Dense, 4), "norm": nn.LayerNorm}\n\n\n'
    kind = {"fields": ['kind: str = "dense"'], "options": ['kind="norm"']}
    chosen = (
        "def get_norm(kind):\n"
        '    if kind == "norm":\n'
        "        return nn.LayerNorm\n"
        "    return nn.RMSNorm\n\n\n"
    )
    return [
        piece(
            [f"@{n} = nn.Dense(self.config.width, use_bias=self.config.bias)", f"@{n}_out = nn.Dense(4)"],
            f"x = @{n}_out(@{n}(x))",
            **config,
        ),
        piece(
            ["cfg = self.config", f"@{n} = nn.Dense(4, use_bias=cfg.bias)"],
            f"x = ACTS[self.config.act](@{n}(x))",
            **(config | {"top": [CONFIG, _ACTS]}),
        ),
        piece(
            ["if self.config.bias:", f"    @{n} = nn.Dense(4)", "else:", f"    @{n} = nn.LayerNorm()"],
            f"x = @{n}(x)",
            **config,
        ),
        piece(f"@{n} = LAYERS[self.kind]()", f"x = @{n}(x)", top=[table], **kind),
        piece(f"@{n} = LAYERS['norm']()", f"x = @{n}(x)", top=[table]),
        piece(f"@{n} = get_norm(self.kind)(epsilon=1e-5)", f"x = @{n}(x)", top=[chosen], **kind),
        piece(
            "",
            'if self.kind == "dense":',
            "    x = nn.Dense(4)(x)",
            'elif self.kind == "norm":',
            "    x = nn.LayerNorm()(x)",
            "else:",
            '    raise ValueError(f"unknown kind {self.kind}")',
            compact=True,
            **kind,
        ),
        piece(
            "",
            "match self.kind:",
            '    case "dense":',
            "        x = nn.Dense(4)(x)",
            "    case _:",
            "        x = nn.LayerNorm()(x)",
            compact=True,
            **kind,
        ),
        piece("", "x = x * self.EPS + self.OFFSET", fields=["EPS: ClassVar[float] = 0.5"], methods=["OFFSET = 2"]),
        piece(
            [f"@{n} = nn.Dense(self.doubled)", f"@{n}_out = nn.Dense(4)"],
            f"x = @{n}_out(@{n}(x))",
            fields=["width: int = 6"],
            options=["width=3"],
            methods=["@property\ndef doubled(self):\n    return self.width * 2"],
        ),
        piece("", "x = self.shifted(x)", methods=["@staticmethod\ndef shifted(x):\n    return nn.relu(x) + 1"]),
        piece(
            f"@{n} = self.layer()",
            f"x = @{n}(x)",
            methods=["@nn.nowrap\ndef layer(self):\n    return nn.Dense(4)"],
        ),
    ]  # fmt: skip
