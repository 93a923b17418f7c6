"""Packages that import a class or function under the name of its own module, which it hides."""

from __future__ import annotations

from tests.rewrite.projects import LINEN, rewrite_in_form, texts
from tests.rewrite.test_forms import said

NET = (
    f"{LINEN}class Net(nn.Module):\n    width: int\n\n    @nn.compact\n"
    "    def __call__(self, x):\n        return nn.Dense(self.width)(x)\n"
)
USES = (
    "import jax\nimport jax.numpy as jnp\n\n\n"
    "def show(model, x):\n    variables = model.init(jax.random.key(0), x)\n"
    "    print(jax.tree.map(jnp.shape, variables), model.apply(variables, x))\n"
)


def test_a_class_with_the_name_of_its_module_is_followed() -> None:
    outer = (
        f"{LINEN}from ..layers import Net\n\n\nclass Outer(nn.Module):\n    @nn.compact\n"
        "    def __call__(self, x):\n        return nn.relu(Net(4)(x))\n"
    )
    files = {
        "pack/__init__.py": "",
        "pack/layers/__init__.py": "from .Net import Net\n",
        "pack/layers/Net.py": NET,
        "pack/models/__init__.py": "from .Outer import Outer\n",
        "pack/models/Outer.py": outer,
        "main.py": (
            f"{USES}\n\ndef main():\n    from pack.layers import Net\n    from pack import models\n"
            "    show(Net(3), jnp.ones((2, 5)))\n    show(models.Outer(), jnp.ones((2, 5)))\n"
        ),
    }
    result = rewrite_in_form(files, "auto")
    assert said(result) == {
        "pack.layers.Net.Net": "explicit",
        "pack.models.Outer.Outer": "explicit",
    }
    made = texts(result, files)
    assert "self.Net_0 = Net(4, in_features=in_features, rngs=rngs)" in made["pack/models/Outer.py"]
    assert "show(lazy(models.Outer)(), " in made["main.py"]


def test_a_call_of_a_function_with_the_name_of_its_module_hands_no_module_on() -> None:
    files = {
        "pack/__init__.py": "",
        "pack/net.py": NET,
        "pack/plots/__init__.py": "from .plot import plot\n",
        "pack/plots/plot.py": (
            "import jax\nfrom ..net import Net\n\n\ndef plot(x, width=3):\n    net = Net(width)\n"
            "    return net.apply(net.init(jax.random.key(0), x), x)\n"
        ),
        "main.py": (
            "import jax.numpy as jnp\nfrom pack.plots import plot\n\n\n"
            "def main():\n    print(plot(jnp.ones((2, 5))))\n    print([*map(plot, [jnp.ones((2, 4))])])\n"
        ),
    }
    assert said(rewrite_in_form(files, "auto")) == {"pack.net.Net": "explicit"}


def test_what_a_module_under_its_own_name_is_asked_for_is_still_in_doubt() -> None:
    files = {
        "pack/__init__.py": "from . import net\n",
        "pack/net.py": NET,
        "main.py": (
            f"{USES}from pack import net\n\n\n"
            "def main(name='Net'):\n    show(vars(net)[name](3), jnp.ones((2, 5)))\n"
        ),
    }
    assert said(rewrite_in_form(files, "auto")) == {"pack.net.Net": "lazy"}
