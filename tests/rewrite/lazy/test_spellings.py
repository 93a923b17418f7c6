"""Every spelling of a reference to ``flax.linen``, and what the lazy form makes of it."""

from __future__ import annotations

import ast
import sys

import pytest

from nnx_migrate.rewrite.lazy import plan_file, write
from nnx_migrate.source.walking import walk

PAIRS = {
    "a module under an alias": (
        "import flax.linen as nn\n",
        "import nnx_migrate.linen as nn\n",
    ),
    "a module from the package": (
        "from flax import linen\n",
        "from nnx_migrate import linen\n",
    ),
    "a module from the package under an alias": (
        "from flax import linen as nn  # layers\n",
        "from nnx_migrate import linen as nn  # layers\n",
    ),
    "a module among other names": (
        "from flax import linen as nn, struct\n",
        "from flax import struct\nfrom nnx_migrate import linen as nn\n",
    ),
    "a module among other names, with comments on each": (
        "from flax import (\n    core,  # trees\n    # layers\n    linen as nn,  # short\n)  # all\n",
        (
            "from flax import (\n    core,  # trees\n)  # all\n"
            "# layers\nfrom nnx_migrate import linen as nn  # short\n"
        ),
    ),
    "names of the module": (
        "from flax.linen import (\n    Dense,  # a layer\n    Module as M)\n",
        "from nnx_migrate.linen import (\n    Dense,  # a layer\n    Module as M)\n",
    ),
    "names of a sub-module": (
        "from flax.linen.partitioning import param_with_axes as param\n",
        "from nnx_migrate.linen.partitioning import param_with_axes as param\n",
    ),
    "all names of the module": (
        "from flax.linen import *\n",
        "from nnx_migrate.linen import *\n",
    ),
    "all names of the package": (
        "from flax import *\n\nlayer = linen.Dense(3)\n",
        "from flax import *\nfrom nnx_migrate import linen\n\nlayer = linen.Dense(3)\n",
    ),
    "several modules in one statement": (
        "import flax.linen as nn, jax.numpy as jnp\n",
        "import nnx_migrate.linen as nn, jax.numpy as jnp\n",
    ),
    "the module by its whole name": (
        "import flax.linen\n\nlayer = flax.linen.Dense(3)\n",
        "import nnx_migrate.linen\n\nlayer = nnx_migrate.linen.Dense(3)\n",
    ),
    "the module by its whole name, beside others of flax": (
        "import flax.linen\n\nx = flax.core.freeze(flax.linen.Dense)\n",
        "import flax\nimport nnx_migrate.linen\n\nx = flax.core.freeze(nnx_migrate.linen.Dense)\n",
    ),
    "the package, for nothing else": (
        "import flax, jax\n\n\nclass A(flax.linen.Module):\n    pass\n",
        "import nnx_migrate.linen, jax\n\n\nclass A(nnx_migrate.linen.Module):\n    pass\n",
    ),
    "the package, for other things too": (
        "import flax\nimport jax\n\nflax.linen.spmd.logical_axis_rules\nflax.struct.dataclass\n",
        (
            "import flax\nimport nnx_migrate.linen\nimport jax\n\n"
            "nnx_migrate.linen.spmd.logical_axis_rules\nflax.struct.dataclass\n"
        ),
    ),
    "the package under an alias": (
        "import flax as fx\n\nL = fx.linen\n",
        "import flax as fx\nimport nnx_migrate.linen\n\nL = nnx_migrate.linen\n",
    ),
    "the package under an assigned name": (
        "import flax\n\nF = flax\nL = F.linen\n",
        "import flax\nimport nnx_migrate.linen\n\nF = flax\nL = nnx_migrate.linen\n",
    ),
    "the package from another file": (
        "from compat import flax\n\nL = flax.linen\n",
        "from compat import flax\nimport nnx_migrate.linen\n\nL = nnx_migrate.linen\n",
    ),
    "the package as an attribute of another file": (
        "import compat\n\nL = compat.flax.linen.Dense\n",
        "import compat\nimport nnx_migrate.linen\n\nL = nnx_migrate.linen.Dense\n",
    ),
    "an import in a function": (
        "def f():\n    import flax\n    return flax.linen.Dense, flax.core\n",
        (
            "def f():\n    import flax\n    import nnx_migrate.linen\n"
            "    return nnx_migrate.linen.Dense, flax.core\n"
        ),
    ),
    "an import that may fail": (
        "try:\n    import flax\nexcept ImportError:\n    flax = None\nDense = flax.linen.Dense\n",
        (
            "try:\n    import flax\n    import nnx_migrate.linen\nexcept ImportError:\n    flax = None\n"
            "Dense = nnx_migrate.linen.Dense\n"
        ),
    ),
    "an import for types only": (
        "if TYPE_CHECKING:\n    import flax.linen as nn\n\n\ndef f(x: 'nn.Module'): ...\n",
        "if TYPE_CHECKING:\n    import nnx_migrate.linen as nn\n\n\ndef f(x: 'nn.Module'): ...\n",
    ),
    "statements on one line": (
        "import os; import flax.core, flax.linen as nn; x = 1\n",
        "import os; import flax.core, nnx_migrate.linen as nn; x = 1\n",
    ),
    "an import beside its condition": (
        "if ready: from flax import struct, linen as nn; x = 1\n",
        "if ready: from flax import struct; from nnx_migrate import linen as nn; x = 1\n",
    ),
    "a module imported by its name": (
        "nn = importlib.import_module('flax.linen')\nother = __import__('flax.linen').linen\n",
        (
            "nn = importlib.import_module('nnx_migrate.linen')\n"
            "other = __import__('nnx_migrate.linen').linen\n"
        ),
    ),
    "the package imported by its name": (
        "flax = importlib.import_module('flax')\nDense = flax.linen.Dense\n",
        (
            "flax = importlib.import_module('flax')\nimport nnx_migrate.linen\n"
            "Dense = nnx_migrate.linen.Dense\n"
        ),
    ),
    "a module taken as an attribute by name": (
        "import flax\n\nnn = getattr(flax, 'linen')\nflax.core\n",
        "import flax\nimport nnx_migrate.linen\n\nnn = getattr(nnx_migrate, 'linen')\nflax.core\n",
    ),
    "a loaded module": (
        "nn = sys.modules['flax.linen']\n",
        "nn = sys.modules['nnx_migrate.linen']\n",
    ),
    "the target of a patch": (
        "@mock.patch('flax.linen.spmd._with_sharding_constraint')\ndef test(): ...\n",
        "@mock.patch('nnx_migrate.linen.spmd._with_sharding_constraint')\ndef test(): ...\n",
    ),
    "the start of a name that is put together": (
        "cls = locate(f'flax.linen.{name}')\nother = locate('flax.linen.' + name)\n",
        "cls = locate(f'nnx_migrate.linen.{name}')\nother = locate('nnx_migrate.linen.' + name)\n",
    ),
    "a quoted annotation": (
        "def f(x: 'Optional[flax.linen.Module]') -> 'flax.linen.Dense': ...\n",
        "def f(x: 'Optional[nnx_migrate.linen.Module]') -> 'nnx_migrate.linen.Dense': ...\n",
    ),
    "a class pattern": (
        "import flax\n\nmatch x:\n    case flax.linen.Dense(features=f): pass\n",
        "import nnx_migrate.linen\n\nmatch x:\n    case nnx_migrate.linen.Dense(features=f): pass\n",
    ),
    "a class statement's keywords and decorators": (
        "import flax\n\n\n@flax.linen.jit\nclass A(flax.linen.Module, kw_only=True): ...\n",
        (
            "import nnx_migrate.linen\n\n\n@nnx_migrate.linen.jit\n"
            "class A(nnx_migrate.linen.Module, kw_only=True): ...\n"
        ),
    ),
    "an expression in an f-string": (
        "import flax\n\nprint(f'{flax.linen.Dense!r} of flax.linen', flax.core)\n",
        (
            "import flax\nimport nnx_migrate.linen\n\n"
            "print(f'{nnx_migrate.linen.Dense!r} of flax.linen', flax.core)\n"
        ),
    ),
}
if sys.version_info >= (3, 12):
    PAIRS["a type alias"] = (
        "import flax\n\ntype Layer = flax.linen.Dense\n",
        "import nnx_migrate.linen\n\ntype Layer = nnx_migrate.linen.Dense\n",
    )
UNCHANGED = {
    "a docstring": '"""flax.linen"""\n\n\ndef f():\n    "flax.linen.Dense"\n',
    "a comment": "import jax  # not flax.linen\n",
    "prose": "print('see flax.linen for more')\n",
    "other parts of flax": "import flax\nfrom flax import struct\nfrom flax.training import train_state\n",
    "another module of that name": "from project import linen\nfrom .flax import linen as nn\n",
    "a parameter named flax": "import flax\n\n\ndef f(flax):\n    return flax.linen\n",
    "an attribute of an object": "import flax\n\nself.flax_like.linen\nshirt.linen\n",
    "lazy code": "import nnx_migrate.linen as nn\nfrom nnx_migrate import linen\n\nnn.Dense\n",
}


def lazily(text: str) -> str:
    tree = ast.parse(text)
    return write(text, tree, plan_file(walk(tree)))


@pytest.mark.parametrize(("before", "after"), PAIRS.values(), ids=PAIRS)
def test_becomes_lazy(before: str, after: str) -> None:
    assert lazily(before) == after


@pytest.mark.parametrize(("before", "after"), PAIRS.values(), ids=PAIRS)
def test_rewriting_again_changes_nothing(before: str, after: str) -> None:
    assert lazily(after) == after


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED)
def test_stays_as_it_is(text: str) -> None:
    assert lazily(text) == text


def test_a_package_keeps_the_name_flax_for_those_who_take_it_from_there() -> None:
    text = "import flax\n\nDense = flax.linen.Dense\n"
    tree = ast.parse(text)
    assert write(text, tree, plan_file(walk(tree), is_package=True)).startswith(
        "import flax\nimport nnx_migrate.linen\n"
    )
