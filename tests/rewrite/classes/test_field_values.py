"""Fields that hold modules or arrays without saying so, and bases with a metaclass: programs go on."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from nnx_migrate.model import Form
from tests.rewrite.projects import rewrite_in_form
from tests.rewrite.running import module_of

HEADER = """\
from abc import ABC, ABCMeta
from typing import Any, Protocol, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp

"""

NET = """

class Net(nn.Module):
    parts: int = 2

    def setup(self):
        self.cells = [nn.Dense(3) for _ in range(self.parts)]
        self.stack = Stack(self.cells)

    def __call__(self, x):
        return self.stack(x)


def run(x):
    return Net().init_with_output(jax.random.key(0), x)
"""


def stack(annotation: str, body: str) -> str:
    lines = "".join(f"        {line}\n" for line in body.split("\n"))
    return (
        f"\nclass Stack(nn.Module):\n    cells: {annotation}\n\n"
        f"    @nn.compact\n    def __call__(self, x):\n{lines}        return nn.Dense(3)(x)\n{NET}"
    )


def scaled(field: str, value: str, scale: str) -> str:
    return (
        f"\nclass Scaled(nn.Module):\n    {field}\n\n"
        f"    @nn.compact\n    def __call__(self, x):\n        return nn.Dense(3)(x) * {scale}\n"
        f"\n\ndef run(x):\n    return Scaled({value}).init_with_output(jax.random.key(0), x)\n"
    )


def based(base: str, bases: str, keyword: str = "") -> str:
    return (
        f"\nclass Block({base}):\n    def __call__(self, x): ...\n\n"
        f"\nclass Embedding({bases}{keyword}):\n    features: int\n\n"
        "    @nn.compact\n    def __call__(self, x):\n        return nn.Dense(self.features)(x)\n"
        "\n\ndef run(x):\n    return Embedding(3).init_with_output(jax.random.key(0), x)\n"
    )


PROGRAMS = {
    "a list whose items a loop calls": stack("list", "for cell in self.cells:\n    x = cell(x)"),
    "items beside others": stack(
        "list", "for i, (n, cell) in enumerate(zip((1, 2), self.cells)):\n    x = cell(x) * n + i"
    ),
    "an item under a name": stack("Any", "cell = self.cells[0]\nx = cell(x)"),
    "the last item": stack("Sequence[nn.Module]", "x = self.cells[-1](x)"),
    "a part": stack("list", "for cell in self.cells[1:]:\n    x = cell(x)"),
    "items of a comprehension": stack("tuple", "x = sum(cell(x) for cell in self.cells)"),
    "a list of arrays": scaled("table: list", "[jnp.float32(2), jnp.ones(())]", "self.table[0]"),
    "arrays among numbers": scaled(
        "table: Sequence[float]", "[jnp.ones((4, 3)), 2.0]", "self.table[0]"
    ),
    "anything": scaled(
        "stats: Any = (0.0, 1.0)", "(jnp.ones((4, 3)), jnp.ones((4, 3)))", "self.stats[1]"
    ),
    "numbers": scaled("sizes: Sequence[int]", "[2, 3]", "sum(self.sizes)"),
    "a protocol": based("Protocol", "Block, nn.Module"),
    "a protocol of a type": based("Protocol", "nn.Module, Block"),
    "an abstract class": based("ABC", "Block, nn.Module"),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_program_computes_what_it_did(program: str) -> None:
    source = HEADER + program
    result = rewrite_in_form({"m.py": source}, "auto")
    (file,) = result.files
    assert file.code is not None
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    with module_of("old", source) as old, module_of("new", file.code) as new:
        theirs, ours = old.run(x), new.run(x)
    assert jax.tree.structure(theirs) == jax.tree.structure(ours)
    jax.tree.map(np.testing.assert_array_equal, theirs, ours)


@pytest.mark.parametrize(
    ("program", "form"),
    [
        (PROGRAMS["a protocol"], Form.EXPLICIT),
        (PROGRAMS["a protocol of a type"], Form.EXPLICIT),
        (PROGRAMS["an abstract class"], Form.EXPLICIT),
        (
            based("metaclass=Kind", "Block, nn.Module").replace(
                "\nclass Bl", "\nclass Kind(ABCMeta):\n    pass\n\n\nclass Bl"
            ),
            Form.LAZY,
        ),
        (PROGRAMS["a list of arrays"], Form.EXPLICIT),
        (PROGRAMS["numbers"], Form.EXPLICIT),
    ],
)
def test_only_a_metaclass_of_its_own_keeps_a_class_lazy(program: str, form: Form) -> None:
    result = rewrite_in_form({"m.py": HEADER + program}, "auto")
    assert {one.form for one in result.classes} == {form}


def test_numbers_are_frozen_and_what_may_be_arrays_is_data() -> None:
    def text(name: str) -> str:
        (file,) = rewrite_in_form({"m.py": HEADER + PROGRAMS[name]}, "auto").files
        return file.code or ""

    assert "self.sizes = nnm.freeze(sizes)" in text("numbers")
    assert "self.table = nnm.as_field(table)" in text("a list of arrays")
    assert "self.stats = nnm.constant(stats)" in text("anything")


@pytest.mark.parametrize(
    "annotation", ["tuple", "'tuple[Any, ...]'", "tuple[jax.Array, jax.Array]"]
)
def test_a_tuple_that_is_handed_on_whole_may_hold_arrays(annotation: str) -> None:
    """The state in which a decoder starts, which another module gives."""
    text = (
        f"{HEADER}class Encoder(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        "        h = nn.Dense(2)(x)\n        return h, h * 2\n\n\n"
        f"class Decoder(nn.Module):\n    state: {annotation}\n\n    @nn.compact\n"
        "    def __call__(self, x):\n        return nn.OptimizedLSTMCell(2)(self.state, x)\n\n\n"
        "class Model(nn.Module):\n    @nn.compact\n    def __call__(self, x, y):\n"
        "        state = Encoder()(y)\n        return Decoder(state)(x)\n\n\ndef run(x):\n"
        "    return Model().init_with_output(jax.random.key(0), x, x)\n"
    )
    result = rewrite_in_form({"m.py": text}, "auto")
    forms = {one.name: (one.form, one.reason) for one in result.classes}
    assert forms["m.Decoder"] == (Form.EXPLICIT, None)
    after = next(one.code or "" for one in result.files)
    x = np.ones((2, 3), np.float32)
    with module_of("before", text) as old, module_of("after", after) as new:
        jax.tree.map(np.testing.assert_array_equal, old.run(x), new.run(x))
