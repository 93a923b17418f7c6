"""Random modules with variables of several collections, statistics, and values sown."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.rewrite.programs.comparing import Program, Step
from tests.rewrite.programs.writing import (
    HEADER,
    Piece,
    Written,
    attribute,
    class_text,
    indented,
    local,
    piece,
)

COLLECTIONS = (
    "state", "cache", "stats", "batch_stats", "intermediates", "losses", "perturbations"
)  # fmt: skip


def variables(n: str, t: str) -> list[Piece]:
    """Counters, means and caches; ``n`` is new, ``t`` the text of a truth."""
    count = f'@{n} = self.variable("state", "{n}", jnp.zeros, ())'
    mean = f'@{n} = self.variable("stats", "{n}_mean", lambda: jnp.ones((1, 4)))'
    cache = f'@{n} = self.variable("cache", "{n}", jnp.zeros, (2, 4), jnp.float32)'
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


def sown(n: str, t: str) -> list[Piece]:
    """Values sown into collections, and perturbed."""
    return [
        piece("", f'self.sow("intermediates", "{n}", x)'),
        piece("", f'self.sow("losses", "{n}", x.mean())'),
        piece("", f'self.sow("losses", "{n}", x.mean())', "x = x * 2", f'self.sow("losses", "{n}", x.mean())'),
        piece("", f'self.sow("losses", "{n}", x.sum(), reduce_fn=lambda a, b: a + b, init_fn=lambda: 0.0)'),
        piece(
            "",
            f'self.sow("intermediates", "{n}", x, reduce_fn=lambda old, new: new, init_fn=lambda: jnp.zeros((2, 4)))',
        ),
        piece("", f"if {t}:", f'    self.sow("losses", "{n}", (x ** 2).sum())'),
        piece("", f'if self.sow("losses", "{n}", x.max()):', "    x = x + 1"),
        piece("", f'x = self.perturb("{n}", x)'),
        piece("", f'x = self.perturb("{n}", x, collection="perturbations") * 2'),
    ]  # fmt: skip


def layers(n: str, t: str) -> list[Piece]:
    """Built-in layers, with statistics and without."""
    return [
        piece(f"@{n} = nn.Dense(4)", f"x = @{n}(x)"),
        piece(f"@{n} = nn.BatchNorm(use_running_average=not self.flag)", f"x = @{n}(x)"),
        piece(f"@{n} = nn.BatchNorm(momentum=0.5)", f"x = @{n}(x, use_running_average=not {t})"),
        piece(
            f"@{n} = nn.BatchNorm(use_running_average=False, use_bias=False)", f"x = @{n}(@{n}(x))"
        ),
        piece(f"@{n} = nn.BatchNorm(use_running_average=None)", f"x = @{n}(x, not {t})"),
        piece(f"@{n} = nn.LayerNorm()", f"x = @{n}(x)"),
    ]


def uses(n: str, t: str, one: Written, k: int) -> list[Piece]:
    """Instances of a class written before."""
    args = f"x, {t}" if one.takes_train else "x"
    named = f"x, train={t}" if one.takes_train else "x"
    made = f"{one.name}()"
    many = f"@{n} = [{made} for _ in range({k})]"
    return [
        piece(f"@{n} = {made}", f"x = @{n}({args})"),
        piece(f"@{n} = {made}", f"x = @{n}(x)"),
        piece(f"@{n} = {made}", f"x = @{n}({named})", f"x = x + @{n}({args})"),
        piece(f"@{n} = {one.name}(flag=False)", f"x = @{n}({named})"),
        piece(f"@{n} = {one.name}(flag=not self.flag)", f"x = @{n}({named})"),
        piece(many, f"for layer in @{n}:", f"    x = layer({args})"),
        piece(many, f"for i in range({k}):", f"    x = x + @{n}[i]({named})"),
        piece(f"@{n} = {made}", "for _ in range(2):", f"    x = @{n}({args})"),
        piece(f"@{n} = {made}", f"x = twice(@{n}, x)"),
        piece(f"@{n} = {made}", f"x = @{n}.turned(x)"),
        piece(f"@{n} = {made}", f"x = @{n}({args}) if self.flag else -@{n}({args})"),
    ]


FUNCTIONS = """\
def twice(layer, x):
    return layer(layer(x))


"""
TURNED = ["def turned(self, x):", "    return -self(x)"]


@st.composite
def pieces(draw: st.DrawFn, n: str, t: str, known: list[Written]) -> Piece:
    kinds = [variables, variables, sown, layers]
    kind = draw(st.integers(0, len(kinds) if known else len(kinds) - 1))
    if kind < len(kinds):
        return draw(st.sampled_from(kinds[kind](n, t)))
    return draw(st.sampled_from(uses(n, t, draw(st.sampled_from(known)), draw(st.integers(1, 3)))))


@st.composite
def classes(draw: st.DrawFn, name: str, known: list[Written], takes_train: bool) -> Written:
    """A class in compact or in setup form."""
    t = "train" if takes_train else "self.flag"
    is_setup = draw(st.booleans())
    setup: list[str] = []
    call: list[str] = []
    prefix = name.lower()
    for number in range(draw(st.integers(1, 4))):
        one = draw(
            pieces(f"{prefix}{number}", t, known).filter(lambda p: not (is_setup and p.is_compact))
        )
        built, called = list(one.built), list(one.called)
        block = draw(
            st.sampled_from(["", "", "", "if self.flag:", "if not self.flag:", f"if {t}:"])
        )
        if is_setup:
            setup += built
            call += [block, *indented(called)] if block else called
        elif draw(st.booleans()):
            call[:0] = built
            call += [block, *indented(called)] if block else called
        else:
            lines = built + called
            call += [block, *indented(lines)] if block else lines
    arguments = "self, x, train=True" if takes_train else "self, x"
    head = [] if is_setup else ["@nn.compact"]
    change = attribute if is_setup else local
    methods = [["def setup(self):", *indented(attribute(setup) or ["pass"])]] if is_setup else []
    methods.append([*head, f"def __call__({arguments}):", *indented([*change(call), "return x"])])
    if name != "Model":
        methods.append(TURNED)
    text = class_text(name, [f"flag: bool = {draw(st.booleans())}"], methods)
    return Written(name, text, takes_train)


@st.composite
def inheriting(draw: st.DrawFn, name: str, known: list[Written]) -> Written:
    """A class that overrides a default or a method of another."""
    base = draw(st.sampled_from(known))
    args = "self, x, train=True" if base.takes_train else "self, x"
    passed = "x, train" if base.takes_train else "x"
    field = f"flag: bool = {draw(st.booleans())}"
    method = draw(
        st.sampled_from(
            [
                [],
                [["def turned(self, x):", "    return self(x) * 3"]],
                [[f"def __call__({args}):", f"    return super().__call__({passed}) + 1"]],
            ]
        )
    )
    return Written(name, class_text(name, [field], method, base.name), base.takes_train)


@st.composite
def state_programs(draw: st.DrawFn) -> Program:
    """Two or three classes and a ``Model`` that uses them."""
    known: list[Written] = []
    for name in ("A", "B", "C")[: draw(st.integers(0, 3))]:
        if known and draw(st.integers(0, 2)) == 0:
            known.append(draw(inheriting(name, known)))
        else:
            known.append(draw(classes(name, known, draw(st.booleans()))))
    model = draw(classes("Model", known, True))
    steps = tuple(
        Step(
            draw(st.booleans()), draw(st.sampled_from([COLLECTIONS, COLLECTIONS, COLLECTIONS[:4]]))
        )
        for _ in range(2)
    )
    text = HEADER + FUNCTIONS + "".join(one.text for one in (*known, model))
    return Program(text, steps, init_train=draw(st.booleans()))
