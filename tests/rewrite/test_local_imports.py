"""Names that a method binds itself, and its module has too: ``__init__`` builds what the method built."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN, dense, looped
from tests.rewrite.test_forms import auto, code, said

BLOCKS = {"blocks.py": LINEN + dense("Block", 6)}
TOP = "import jax\nimport flax.linen as nn\nimport blocks\n\n\n" + dense("Block", 2)


def net(*lines: str, fields: str = "") -> str:
    """The class ``Net`` whose compact call has these lines."""
    body = "".join(f"        {line}\n" for line in lines)
    return f"class Net(nn.Module):\n{fields}    @nn.compact\n    def __call__(self, x):\n{body}"


BOUND = {
    "an import": ("from blocks import Block", "return Block()(x)"),
    "an alias of an import": ("from blocks import Block as Part", "return Part()(x)"),
    "an import of its module": ("import blocks as jax", "return jax.Block()(x)"),
    "an assignment": ("Block = blocks.Block", "return Block()(x)"),
    "an import under with": (
        'with jax.named_scope("a"):',
        "    from blocks import Block",
        "    return Block()(x)",
    ),
    "an import in a loop": (
        "for _ in range(2):",
        "    from blocks import Block",
        "    x = Block()(x)",
        "return x",
    ),
    "the class under a lift": ("from blocks import Block", "return nn.remat(Block)()(x)"),
}


@pytest.mark.parametrize("lines", BOUND.values(), ids=BOUND)
def test_the_binding_comes_along(lines: tuple[str, ...]) -> None:
    result = auto({**BLOCKS, "m.py": TOP + net(*lines)})
    assert said(result)["m.Net"] == "explicit"
    made = code(result).partition("class Net")[2].partition("def __call__")[0]
    binding = next(line.strip() for line in lines if "blocks" in line)
    assert binding in made
    assert made.index(binding) < made.index("in_features=")


def test_what_the_module_has_stays_as_it_is() -> None:
    result = auto({**BLOCKS, "m.py": TOP + net("import math", "return Block()(x)")})
    assert "def __init__(self, *, in_features: int, rngs: nnx.Rngs):\n        self.Block_0" in code(
        result
    )


UNKNOWN = {
    "a choice of the call": (
        "if x.sum() > 0:",
        "    from blocks import Block",
        "return Block()(x)",
    ),
    "an import that may fail": (
        "try:",
        "    from blocks import Block",
        "except ImportError:",
        "    Block = None",
        "return Block()(x)",
    ),
    "a class by a name": ("Block = getattr(blocks, 'Block')", "return Block()(x)"),
}


@pytest.mark.parametrize("lines", UNKNOWN.values(), ids=UNKNOWN)
def test_a_class_that_is_not_known_is_built_lazily(lines: tuple[str, ...]) -> None:
    assert said(auto({**BLOCKS, "m.py": TOP + net(*lines)}))["m.Net"] == "lazy"


HELPER = "    def helper(self, x):\n        return Part()(x)\n\n"


def test_a_helper_method_that_builds_a_lazy_class_takes_no_size() -> None:
    text = LINEN + looped("Part") + net("return self.helper(x)", fields=HELPER)
    result = auto({"m.py": text})
    assert said(result) == {"m.Part": "lazy", "m.Net": "explicit"}
    assert "self.init_helper(names, rngs=rngs)" in code(result)
    assert "in_features" not in code(result)


def test_one_that_builds_an_explicit_class_takes_its_size() -> None:
    text = LINEN + dense("Part") + net("return self.helper(x)", fields=HELPER)
    assert "self.init_helper(names, in_features=in_features, rngs=rngs)" in code(
        auto({"m.py": text})
    )
