"""Random programs: classes in compact and in setup form, made of pieces, that build each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
# Pieces with a name that is new, the text of a truth, and the classes written before.
Kind = Callable[[str, str, Sequence[Written]], list[Piece]]


def uses(n: str, t: str, known: Sequence[Written] = ()) -> list[Piece]:
    """Instances of classes written before."""
    return [one for cls in known for one in _uses(n, t, cls, 2)]


def _uses(n: str, t: str, one: Written, k: int) -> list[Piece]:
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


def jittered(x, key):
    return x + jax.random.normal(key, x.shape)


"""
TURNED = ["def turned(self, x):", "    return -self(x)"]


@st.composite
def pieces(
    draw: st.DrawFn, n: str, t: str, kinds: Sequence[Kind], known: Sequence[Written], is_setup: bool
) -> Piece:
    """One of the pieces of one of the kinds."""
    found = [kind(n, t, known) for kind in kinds]
    found = [[one for one in many if not (is_setup and one.is_compact)] for many in found]
    return draw(st.sampled_from(draw(st.sampled_from([many for many in found if many]))))


@st.composite
def classes(
    draw: st.DrawFn,
    name: str,
    kinds: Sequence[Kind],
    known: Sequence[Written],
    takes_train: bool,
    decorators: Sequence[str] = ("",),
) -> Written:
    """A class in compact or in setup form."""
    t = "train" if takes_train else "self.flag"
    is_setup = draw(st.booleans())
    setup: list[str] = []
    call: list[str] = []
    for number in range(draw(st.integers(1, 4))):
        one = draw(pieces(f"{name.lower()}{number}", t, kinds, known, is_setup))
        block = draw(
            st.sampled_from(["", "", "", "if self.flag:", "if not self.flag:", f"if {t}:"])
        )
        together = not is_setup and draw(st.booleans())
        lines = [*one.built, *one.called] if together else list(one.called)
        call += [block, *indented(lines)] if block else lines
        if is_setup:
            setup += one.built
        elif not together:
            call[:0] = one.built
    arguments = "self, x, train=True" if takes_train else "self, x"
    decorator = draw(st.sampled_from(decorators)) if not takes_train else ""
    head = [one for one in (decorator, "" if is_setup else "@nn.compact") if one]
    change = attribute if is_setup else local
    methods = [["def setup(self):", *indented(attribute(setup) or ["pass"])]] if is_setup else []
    methods.append([*head, f"def __call__({arguments}):", *indented([*change(call), "return x"])])
    if name != "Model":
        methods.append(TURNED)
    text = class_text(name, [f"flag: bool = {draw(st.booleans())}"], methods)
    return Written(name, text, takes_train)


@st.composite
def inheriting(draw: st.DrawFn, name: str, known: Sequence[Written]) -> Written:
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
def programs(
    draw: st.DrawFn,
    kinds: Sequence[Kind],
    streams: Sequence[str],
    decorators: Sequence[str] = ("",),
    after: Callable[[Written], str] = lambda one: "",
) -> Program:
    """Up to three classes, and a ``Model`` that uses them."""
    known: list[Written] = []
    for name in ("A", "B", "C")[: draw(st.integers(0, 3))]:
        if known and draw(st.integers(0, 2)) == 0:
            known.append(draw(inheriting(name, known)))
        else:
            known.append(draw(classes(name, kinds, known, draw(st.booleans()), decorators)))
    model = draw(classes("Model", kinds, known, True))
    steps = tuple(
        Step(
            draw(st.booleans()), draw(st.sampled_from([COLLECTIONS, COLLECTIONS, COLLECTIONS[:4]]))
        )
        for _ in range(2)
    )
    text = HEADER + FUNCTIONS + "".join(one.text + after(one) for one in known) + model.text
    return Program(text, steps, tuple(streams), init_train=draw(st.booleans()))
