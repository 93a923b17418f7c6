"""What stays Linen because a string or a lookup by name says it is told, each place once."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Outcome
from tests.rewrite.lazy.test_projects import lazily

KEPT, REFUSED = Outcome.KEPT, Outcome.REFUSED
TOLD = {
    "code to run": ("code = 'import flax.linen as nn\\nnn.Dense'\n", KEPT),
    "code with names of the package": ("code = 'from flax import struct, linen'\n", KEPT),
    "a path of another syntax": ("cfg = 'flax.linen.linear:Dense'\n", KEPT),
    "a binding of gin": ("gin = '''\nModel.layer = @flax.linen.Dense\n'''\n", KEPT),
    "an example that doctest runs": ('"""Doc.\n\n>>> import flax.linen as nn\n"""\n', KEPT),
    "a relative module": ("m = import_module('.linen', 'flax')\n", REFUSED),
    "a module from a list": ("m = __import__('flax', fromlist=['linen']).linen\n", REFUSED),
    "a loaded package": ("m = sys.modules['flax'].linen\n", REFUSED),
    "a dictionary of the package": ("import flax\nm = vars(flax)['linen']\n", REFUSED),
    "an attribute that is set": ("import flax\nflax.linen = fake\n", REFUSED),
    "an attribute of an instance": ("m = self.flax.linen\n", REFUSED),
}
SILENT = {
    "what is rewritten": "import flax\nx = flax.linen.Dense\ny = getattr(flax, 'linen')\n",
    "a name that is rewritten": "m = import_module('flax.linen')\n",
    "a docstring": '"""As flax.linen does."""\n',
    "a comment": "# flax.linen\nimport jax\n",
    "another linen": "x = shirt.linen\ny = shirts['linen']\n",
}


@pytest.mark.parametrize(("text", "outcome"), TOLD.values(), ids=TOLD)
def test_is_told(text: str, outcome: Outcome) -> None:
    result = lazily({"m.py": text})
    (finding,) = result.findings
    assert (finding.path, finding.outcome) == ("m.py", outcome)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_not_told(text: str) -> None:
    assert lazily({"m.py": text}).findings == ()
