"""Of two bindings of a name, of which one is a star, the later holds; where that is not sure the class is lazy."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN, caller, dense
from tests.rewrite.test_forms import auto, code, said

GAIN = (
    "class Gain(nn.Module):\n"
    "    @nn.compact\n"
    "    def __call__(self, x):\n"
    '        return x * self.param("gain", nn.initializers.ones, (x.shape[-1],))\n\n\n'
)
OTHERS = {
    "one.py": LINEN
    + dense("Piece", 3)
    + "WIDTH = 3\n_HIDDEN = 3\n\n\ndef widen(n):\n    return 3\n",
    "two.py": LINEN
    + dense("Piece", 1)
    + "WIDTH = 1\n_HIDDEN = 1\n\n\ndef widen(n):\n    return 1\n",
    "listed.py": LINEN + '__all__ = ["other"]\n' + dense("Piece", 1),
    "open.py": LINEN + '__all__ = ["other"]\n__all__ += ["Piece"]\n' + dense("Piece", 1),
    "both.py": "from one import *\nfrom two import *\n",
    "again.py": "from one import Piece\n",
    "gain.py": LINEN + GAIN,
}
IMPORTS = "import flax.linen as nn\nfrom gain import Gain\n"
NET = caller("Net", "Gain()(Piece()(x))")

ORDERS = {
    "the later of two stars": ("from one import *\nfrom two import *\n", 1),
    "in the other order": ("from two import *\nfrom one import *\n", 3),
    "a star of two stars": ("from both import *\n", 1),
    "a star below an import": ("from one import Piece\nfrom two import *\n", 1),
    "an import below a star": ("from one import *\nfrom two import Piece\n", 1),
    "an alias below a star": ("from one import *\nfrom two import Piece as Piece\n", 1),
    "a star that takes other names": ("from one import *\nfrom listed import *\n", 3),
    "a star that takes other names below an import": ("from one import Piece\nfrom listed import *\n", 3),
    "a star of the same": ("from one import Piece\nfrom again import *\n", 3),
    "a class below stars": ("from one import *\nfrom two import *\n\n\n" + dense("Piece", 2), 2),
}  # fmt: skip


@pytest.mark.parametrize(("imports", "width"), ORDERS.values(), ids=ORDERS)
def test_the_later_binding_holds(imports: str, width: int) -> None:
    result = auto({**OTHERS, "m.py": IMPORTS + imports + "\n\n" + NET})
    assert said(result)["m.Net"] == "explicit"
    assert f"Gain(in_features={width}, rngs=rngs)" in code(result)


@pytest.mark.parametrize(
    ("imports", "size"),
    [
        ("from one import *\nfrom two import *\n", "WIDTH"),
        ("from one import *\nfrom two import *\n", "widen(2)"),
        ("from one import WIDTH, widen\nfrom two import *\n", "widen(WIDTH)"),
        ("from two import _HIDDEN\nfrom one import *\n", "_HIDDEN"),
    ],
)
def test_so_it_does_of_constants_and_functions(imports: str, size: str) -> None:
    net = caller("Net", f"Gain()(nn.Dense({size})(x))")
    text = code(auto({**OTHERS, "m.py": IMPORTS + imports + "\n\n" + net}))
    assert f"rngs.params(), ({size},)" in text or "Gain(in_features=1, rngs=rngs)" in text


UNSURE = {
    "a class above a star": dense("Piece", 2) + "from two import *\n",
    "a star that may fail": (
        "from one import *\n\ntry:\n    from two import *\nexcept ImportError:\n    pass\n"
    ),
    "two that may fail": (
        "try:\n    from one import *\nexcept ImportError:\n    from two import *\n"
    ),
    "one that may take it": "from one import *\nfrom open import *\n",
    "the earlier is a base": (
        "from one import *\n\n\nclass Sub(Piece):\n    pass\n\n\nfrom two import *\n"
    ),
    "the earlier has been read": "from one import *\n\nkinds = [Piece]\nfrom two import *\n",
    "the star has been read": "from one import *\n\nKept = Piece\nfrom two import Piece\n",
    "an import above it has been read": (
        "from one import Piece\n\nkinds = [Piece]\nfrom two import *\n"
    ),
}


@pytest.mark.parametrize("imports", UNSURE.values(), ids=UNSURE)
def test_a_class_is_lazy_where_the_later_binding_is_not_sure(imports: str) -> None:
    result = auto({**OTHERS, "m.py": IMPORTS + imports + "\n\n" + NET})
    assert said(result)["m.Net"] == "lazy"


def test_a_constant_above_a_star_has_no_known_value() -> None:
    net = caller("Net", "Gain()(nn.Dense(WIDTH)(x))")
    result = auto({**OTHERS, "m.py": IMPORTS + "WIDTH = 2\nfrom two import *\n\n\n" + net})
    assert "in_features=2" not in code(result)
