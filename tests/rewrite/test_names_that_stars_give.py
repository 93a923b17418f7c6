"""Names that new code needs and ``from common import *`` gives another meaning."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import files_printed_alike

COMMON = """\
import jax
import jax.numpy as jnp

nnx = 2


def lazy(function):
    return function
"""
MODELS = (
    LINEN
    + "\n\nclass Net(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n        return nn.Dense({})(x)\n"
)
MAIN = """\
{stars}

def main():
    x = jnp.ones((1, 3))
    variables = lazy(lambda: Net().init(jax.random.key(0), x))
    print({read}, Net().apply(variables(), x))
"""
IMPORTS = "import jax\nimport jax.numpy as jnp\n"


def form(models: str, main: str) -> str:
    files = {"common.py": COMMON, "models.py": models, "m.py": main}
    return files_printed_alike(files)["models.Net"]


@pytest.mark.parametrize(
    ("models", "main"),
    [
        (
            MODELS.format(2),
            MAIN.format(stars="from common import *\nfrom models import Net", read="1"),
        ),
        (
            "from common import *\n" + MODELS.format("nnx"),
            MAIN.format(stars=f"{IMPORTS}from models import Net\nlazy = jax.jit", read="1"),
        ),
        (
            MODELS.format(2),
            MAIN.format(
                stars="from common import *\nfrom models import *\nlazy = jax.jit", read="nnx"
            ),
        ),
    ],
    ids=["where a class is named", "in the file of the class", "beside the class"],
)
def test_a_name_that_stands_for_something_else_keeps_the_class_lazy(models: str, main: str) -> None:
    assert form(models, main) == "lazy"


@pytest.mark.parametrize(
    ("stars", "read"),
    [
        ("from models import Net, nnx", "nnx"),
        ("import models\nfrom models import Net", "models.nnx"),
    ],
    ids=["imported", "an attribute"],
)
def test_a_name_that_others_take_from_the_file_keeps_its_meaning(stars: str, read: str) -> None:
    main = MAIN.format(stars=IMPORTS + stars, read=read).replace("lazy(lambda:", "(lambda:")
    assert form("from common import *\n" + MODELS.format(2), main) == "lazy"


def test_a_name_that_a_star_gives_the_same_meaning_is_no_other() -> None:
    common = IMPORTS + "from flax import nnx\n"
    main = (
        "from common import *\nfrom models import Net\n\n\ndef main():\n    x = jnp.ones((1, 3))\n"
    )
    main += "    print(nnx.relu(x), Net().init(jax.random.key(0), x))\n"
    files = {
        "common.py": common,
        "models.py": f"from common import *\n{MODELS.format(2)}",
        "m.py": main,
    }
    assert files_printed_alike(files)["models.Net"] == "explicit"


def test_a_class_statement_may_be_given_a_class_by_keyword() -> None:
    main = IMPORTS + "from models import Net\n\n\n"
    main += "class Run:\n    def __init_subclass__(cls, net=None):\n        cls.net = net\n\n\n"
    main += "class Own(Run, net=Net):\n    pass\n\n\n"
    main += "def main():\n    print(Own.net().init(jax.random.key(0), jnp.ones((1, 3))))\n"
    assert form(MODELS.format(2), main) == "explicit"
