"""Random classes: in compact and in setup form, made of pieces, that build each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from benchmarks.generated.kinds.annotated import annotated
from benchmarks.generated.kinds.building import gathered, placed
from benchmarks.generated.kinds.codebooks import codebooks
from benchmarks.generated.kinds.containers import held, tables
from benchmarks.generated.kinds.fields import configs, functions, sizes
from benchmarks.generated.kinds.layers import normalised, plain, recurrent
from benchmarks.generated.kinds.lifts import lifted
from benchmarks.generated.kinds.loops import loops
from benchmarks.generated.kinds.references import references
from benchmarks.generated.kinds.rng import dropouts, keys
from benchmarks.generated.kinds.sharing import holding, uses
from benchmarks.generated.kinds.state import sown, variables
from benchmarks.generated.kinds.transforms import transformed
from benchmarks.generated.writing import Piece, Written, attribute, class_text, indented, local

# Pieces with a name that is new, the text of a truth, and the classes written before.
Kind = Callable[[str, str, Sequence[Written]], list[Piece]]
KINDS: tuple[Kind, ...] = (
    plain, sizes, functions, configs, placed, gathered, holding, dropouts, normalised, variables,
    uses, uses, uses, lifted, sown, keys, annotated, transformed, recurrent, codebooks, loops, tables,
    held, references,
)  # fmt: skip
DECORATORS = ("", "", "", "@nn.remat", "@nn.jit", "@partial(nn.remat, prevent_cse=False)", "@jax.named_scope('call')")  # fmt: skip
_REQUIRED = ("inner=nn.Dense(4)", "inner=nn.LayerNorm()", "inner=nn.Sequential([nn.Dense(4), nn.relu])")  # fmt: skip
_LOCALS = ("y", "i", "block", "dense", "first", "layer", "layers", "options", "skips", "w")
_TOOLS = ("in_features", "module", "names", "nnx", "rngs", "scope_name", "x_features", "x_shape")
# Among more than 100 hypothesis prefers integers of the modules that are loaded: a batch would change with them.
_MANY = 100
_FLAGS = ("flag=False", "flag=True", "flag=not self.flag")


def _name_of(option: str) -> str:
    return option.partition("=")[0]


@st.composite
def arguments(draw: st.DrawFn, one: Written, inside: bool = True) -> Written:
    """The class with arguments for one constructor call; ``inside`` another module."""
    options = [o for o in one.options if inside or "self." not in o]
    chosen = draw(st.lists(st.sampled_from(options), max_size=2, unique_by=_name_of))
    required = [need if "=" in need else draw(st.sampled_from(_REQUIRED)) for need in one.required]
    return replace(one, args=", ".join([*required, *chosen]))


@st.composite
def pieces(draw: st.DrawFn, n: str, t: str, known: Sequence[Written], form: str) -> Piece:
    """One of the pieces of one of the kinds."""
    made = [draw(arguments(one)) for one in known[-2:]]
    found = [kind(n, t, made) for kind in draw(st.sampled_from([(one,) for one in KINDS]))]
    found = [[one for one in many if one.only in ("", form)] for many in found]
    many = [one for some in found for one in some] or [
        one for one in plain(n, t) if one.only in ("", form)
    ]
    count = -(-len(many) // _MANY)
    return draw(st.sampled_from(draw(st.sampled_from([many[i::count] for i in range(count)]))))


@st.composite
def classes(draw: st.DrawFn, name: str, known: Sequence[Written], takes_train: bool) -> Written:
    """A class in compact or in setup form."""
    t = "train" if takes_train else "self.flag"
    form = draw(st.sampled_from(["compact", "setup"]))
    parts = [
        draw(pieces(f"{name.lower()}{i}", t, known, form)) for i in range(draw(st.integers(1, 4)))
    ]
    setup: list[str] = []
    call: list[str] = []
    for part in parts:
        together = form == "compact" and draw(st.booleans())
        call += draw(blocks(part, t, together))
        if form == "setup":
            setup += part.built
        elif not together:
            call[:0] = part.built
    body = draw(methods_of(call, setup, takes_train, form))
    fields = [f"flag: bool = {draw(st.booleans())}"]
    for part in parts:
        taken = {_name_of(one).partition(":")[0] for one in fields}
        fields += [one for one in part.fields if one.partition(":")[0] not in taken]
    required = tuple("inner" for one in fields if one == "inner: nn.Module")
    fields.sort(key=lambda one: "=" in one)
    extra = list(dict.fromkeys(method for part in parts for method in part.methods))
    attributes = [one for one in extra if "\n" not in one]
    methods = [one.split("\n") for one in extra if "\n" in one]
    docstring = draw(st.sampled_from([[], [], [f'"""The class {name}."""', ""]]))
    text = class_text(
        name, [*docstring, *fields, *attributes], [*methods, *body, *_turned(takes_train)]
    )
    text = draw(crowded(text))
    options = (*_FLAGS, *(o for part in parts for o in part.options if o != "REQUIRED"))
    top = tuple(one for part in parts for one in part.top)
    return Written(
        name, text, takes_train, tuple(dict.fromkeys(options)), required, "", form == "setup", top
    )  # fmt: skip


@st.composite
def crowded(draw: st.DrawFn, text: str) -> str:
    """The text, perhaps with locals that are called as those of explicit constructors are."""
    found = [one for one in _LOCALS if re.search(rf"\b{one} = |for {one} in", text)]
    if not found or draw(st.integers(0, 3)):
        return text
    word = draw(st.sampled_from([one for one in _TOOLS if one not in text]))
    return re.sub(rf"(?<![.\w'\"]){draw(st.sampled_from(found))}\b(?!=)", word, text)


def _turned(takes_train: bool) -> list[list[str]]:
    return [["def turned(self, x):", "    return -self(x)"]]


@st.composite
def blocks(draw: st.DrawFn, part: Piece, t: str, together: bool) -> list[str]:
    """The lines of a piece, perhaps under a condition or in a loop."""
    lines = [*part.built, *part.called] if together else list(part.called)
    heads = ["", "", "", "", "if self.flag:", "if not self.flag:", "with jax.named_scope('part'):"]
    if not part.built:
        heads += [f"if {t}:", "if x.ndim == 2:"]
    elif not together:
        heads += ["for _ in range(2):", f"if {t}:", "if x.shape[0] > 1 and self.flag:"]
    head = draw(st.sampled_from(heads))
    return [head, *indented(lines)] if head and lines else lines


@st.composite
def methods_of(
    draw: st.DrawFn, call: list[str], setup: list[str], takes_train: bool, form: str
) -> list[list[str]]:
    """``setup`` and ``__call__``, which may leave a part of its work to a helper."""
    given = draw(st.sampled_from(["train=True", "train: bool = False"])) if takes_train else ""
    head = ", ".join(["self", "x", *([given] if given else [])])
    decorator = draw(st.sampled_from(DECORATORS)) if not takes_train and form == "setup" else ""
    heads = [one for one in (decorator, "@nn.compact" if form == "compact" else "") if one]
    change = attribute if form == "setup" else local
    lines = change(call)
    methods = []
    if form == "setup":
        methods.append(["def setup(self):", *indented(attribute(setup) or ["pass"])])
    if form == "setup" and draw(st.integers(0, 3)) == 0:
        passed = "x, train" if takes_train else "x"
        methods.append([*heads, f"def __call__({head}):", f"    return self.run({passed})"])
        methods.append([f"def run({head}):", *indented([*lines, "return x"])])
    else:
        methods.append([*heads, f"def __call__({head}):", *indented([*lines, "return x"])])
    return methods


@st.composite
def inheriting(draw: st.DrawFn, name: str, known: Sequence[Written]) -> Written:
    """A class that overrides a default, a method or ``setup`` of another."""
    base = draw(st.sampled_from(known))
    head = "self, x, train=True" if base.takes_train else "self, x"
    passed = "x, train" if base.takes_train else "x"
    field = f"flag: bool = {draw(st.booleans())}"
    supers = [
        [["def turned(self, x):", "    return self(x) * 3"]],
        [[f"def __call__({head}):", f"    return super().__call__({passed}) + 1"]],
        [["def turned(self, x):", "    return super().turned(x) + 1"]],
    ]
    if base.is_setup:
        more = [
            "def setup(self):",
            "    super().setup()",
            f"    self.{name.lower()}9 = nn.Dense(4)",
        ]
        supers += [
            [more, [f"def __call__({head}):", f"    return self.{name.lower()}9(super().__call__({passed}))"]]
        ] * 2  # fmt: skip
    else:
        supers += [
            [["@nn.compact", f"def __call__({head}):", f"    x = super().__call__({passed})", "    return nn.Dense(4)(x)"]],
            [["@nn.compact", f"def __call__({head}):", "    x = nn.Dense(4)(x)", f"    return super().__call__({passed})"]],
        ]  # fmt: skip
    methods = draw(st.sampled_from([[], *supers]))
    has_mixin = draw(st.integers(0, 3)) == 0
    mixin = "class Scaling:\n    def scaled(self, x):\n        return x * 2\n\n\n"
    bases = f"Scaling, {base.name}" if has_mixin else base.name
    text = class_text(name, [field], methods, bases)
    return replace(base, name=name, text=text, top=(mixin,) if has_mixin else (), args="")


@st.composite
def families(draw: st.DrawFn) -> list[Written]:
    """Up to four classes, and a ``Model`` that uses them."""
    known: list[Written] = []
    for name in ("Alpha", "Beta", "Gamma", "Delta")[: draw(st.integers(0, 4))]:
        if known and draw(st.integers(0, 3)) == 0:
            known.append(draw(inheriting(name, known)))
        else:
            known.append(draw(classes(name, known, draw(st.booleans()))))
    model = draw(classes("Model", known, True).filter(lambda one: not one.required))
    return [*known, model]
