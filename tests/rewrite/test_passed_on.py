"""Every caller in the project passes the new arguments on, and positional arguments stay in place."""

from __future__ import annotations

import ast

from nnx_migrate.model import Outcome
from tests.rewrite.projects import LINEN, rewrite, rewrite_in_form
from tests.rewrite.running import printed_alike

BLOCK = (
    "class Block(nn.Module):\n    features: int\n    scale: float = 1.0\n\n"
    "    @nn.compact\n    def __call__(self, x):\n"
    "        return nn.Dense(self.features)(x) * self.scale\n"
)
CALLERS = (
    "import flax.linen as nn\nimport jax\nfrom block import Block\n\n\n"
    "class Outer(nn.Module):\n    width: int\n\n"
    "    @nn.compact\n    def __call__(self, x):\n"
    "        x = Block(self.width, 0.5)(x)\n"
    "        return Block(3, scale=2.0)(x)\n\n\n"
    "def start(x):\n    model = Block(4, 0.25)\n"
    "    variables = model.init(jax.random.key(0), x)\n"
    "    return model.apply(variables, x)\n"
)


def files() -> dict[str, str]:
    result = rewrite({"block.py": LINEN + BLOCK, "callers.py": CALLERS})
    assert {one.outcome for one in result.classes} == {Outcome.REWRITTEN}
    return {one.path: one.code or "" for one in result.files}


def test_fields_keep_their_places_and_new_arguments_come_by_name() -> None:
    tree = ast.parse(files()["block.py"])
    (init,) = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)][:1]
    assert [one.arg for one in init.args.args] == ["self", "features", "scale"]
    assert [one.arg for one in init.args.kwonlyargs] == ["in_features", "rngs"]


def test_a_class_that_builds_another_by_position_passes_the_size_on() -> None:
    text = files()["callers.py"]
    assert "Block(self.width, 0.5, in_features=in_features, rngs=rngs)" in text
    assert "Block(3, scale=2.0, in_features=self.width, rngs=rngs)" in text


def test_code_outside_of_classes_passes_it_on() -> None:
    assert "model = lazy(Block)(4, 0.25)\n" in files()["callers.py"]


CONDITIONAL = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Tower(nn.Module):
    deep: bool = False
    sizes: tuple[int, ...] = (5, 4)

    @nn.compact
    def __call__(self, x):
        x = nn.RNN(nn.MGUCell(4))(x[None])[0]
        if self.deep:
            *hidden, last = self.sizes
            for size in hidden:
                x = nn.tanh(nn.Dense(size)(x))
            x = nn.Dense(last)(x)
        return x


class Net(nn.Module):
    deep: bool = False

    def setup(self):
        self.first = nn.Dense(4)
        self.tower = Tower(self.deep)

    def __call__(self, x):
        return self.tower(self.first(x))


class Deep(Net):
    deep: bool = True


def main():
    for model in (Net(), Net(True), Deep(), Deep(False), Tower(True, (3,))):
        print(jax.tree.map(jnp.shape, model.init(jax.random.key(0), jnp.ones((3, 4)))))
"""


def test_a_size_that_a_part_needs_under_a_condition_is_asked_for_on_the_way() -> None:
    assert printed_alike(CONDITIONAL) == dict.fromkeys(("m.Tower", "m.Net", "m.Deep"), "explicit")


UNNEEDED = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Part(nn.Module):
    plain: bool = True
    rounds: int = 2

    @nn.compact
    def __call__(self, x):
        x = nn.RMSNorm()(x)
        if not self.plain:
            layers = [nn.Dense(4), nn.LayerNorm()]
            for _ in range(self.rounds):
                for layer in layers:
                    x = layer(x)
        return x


class Where(nn.Module):
    @nn.compact
    def __call__(self, x):
        if x.ndim == 2:
            x = x + Part(name="part")(x)
        return x


def main():
    for model in (Part(), Part(False), Where()):
        print(jax.tree.map(jnp.shape, model.init(jax.random.key(0), jnp.ones((3, 4)))))
"""


def test_a_part_is_built_without_a_size_that_it_may_leave_out() -> None:
    assert printed_alike(UNNEEDED) == {"m.Part": "explicit", "m.Where": "explicit"}


def tower(count: int) -> str:
    """A class of that many layers whose inputs nobody knows."""
    layers = "        x = nn.Dense(3)(self.between(x))\n" * count
    return (
        f"{LINEN}from typing import Any\n\n\nclass Net(nn.Module):\n    between: Any\n\n"
        f"    @nn.compact\n    def __call__(self, x):\n{layers}        return x\n"
    )


def test_ten_sizes_are_asked_for_and_more_keep_the_class_lazy() -> None:
    ten = rewrite_in_form({"m.py": tower(10)}, "auto")
    assert ten.classes[0].form == "explicit"
    assert len(ten.classes[0].new_arguments) == 10
    more = rewrite_in_form({"m.py": tower(11)}, "auto")
    assert more.classes[0].form == "lazy"
    assert "its constructor would take 11 sizes that only callers know" in str(more.findings)
