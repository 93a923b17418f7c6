"""Names below ``flax.linen`` that ``nnx_migrate.linen`` lacks are told, not left to fail."""

import importlib

import flax.linen
import pytest

from nnx_migrate.rewrite.lazy.names import is_missing
from tests.linen.test_names import MODULES, public
from tests.rewrite.projects import rewrite_in_form


@pytest.mark.parametrize("module", MODULES)
def test_no_public_name_of_flax_is_missing(module: str) -> None:
    names = public(f"flax.linen{module}")
    assert not [name for name in names if is_missing(f"flax.linen{module}.{name}")]


@pytest.mark.parametrize(
    "name", ["Foo", "module._no_such_name", "nothing.Dense", "Module._no_such_method"]
)
def test_what_our_package_lacks_is_missing(name: str) -> None:
    assert is_missing(f"flax.linen.{name}")


@pytest.mark.parametrize(
    "name", ["linear._conv_dimension_numbers", "Module._try_setup", "Dense.__call__", "Dense.mine"]
)
def test_what_our_package_has_is_not_missing(name: str) -> None:
    """Private names that code is found to use are there; members may be the user's own."""
    assert not is_missing(f"flax.linen.{name}")


def test_private_names_are_those_of_our_modules() -> None:
    wrapping = importlib.import_module("nnx_migrate.linen.module")._get_unbound_fn
    assert wrapping(flax.linen.Dense(2).__call__) is flax.linen.Dense.__call__


@pytest.mark.parametrize("form", ["lazy", "auto"])
def test_a_missing_name_is_refused_with_its_place(form: str) -> None:
    text = "import flax.linen as nn\n\nprint(nn.relu(1))\nprint(nn.Foo)\n"
    result = rewrite_in_form({"m.py": text}, form)
    (finding,) = [one for one in result.findings if one.outcome == "refused"]
    assert (finding.line, finding.rule) == (4, "reference")
    assert "flax.linen.Foo" in finding.message
    assert (result.references.total, result.references.refused) == (2, 1)


LIFT = "def mapped(target):\n    return transforms.lift_transform({}, target, {{'params': 0}})\n"
TRANSFORMS = "from flax.linen import transforms\n"


@pytest.mark.parametrize("form", ["lazy", "auto"])
@pytest.mark.parametrize(
    "imports",
    [
        "from flax.core import lift\n",
        "import flax.core.lift as lift\n",
        "from flax.core.lift import vmap\n",
        "from flax.core import (\n    freeze,\n    lift,\n)\n",
    ],
)
def test_a_lift_of_functions_of_scopes_is_refused(form: str, imports: str) -> None:
    files = {"m.py": TRANSFORMS + imports + LIFT.format("lift.vmap"), "n.py": "import flax\n"}
    (finding,) = rewrite_in_form(files, form).findings
    assert (finding.path, finding.outcome) == ("m.py", "refused")
    assert "flax.core.lift" in finding.message


@pytest.mark.parametrize(
    ("imports", "called"),
    [
        ("import flax\n", "flax.core.lift.vmap"),
        ("import flax.core\n", "flax.core.lift.vmap"),
        ("import flax.core as fc\n", "fc.lift.vmap"),
        ("from flax import core\n", "core.lift.vmap"),
        ("import flax as fx\n", "fx.core.lift.vmap"),
    ],
)
def test_it_is_refused_where_it_is_read_as_an_attribute(imports: str, called: str) -> None:
    files = {"m.py": TRANSFORMS + imports + LIFT.format(called)}
    (finding,) = rewrite_in_form(files, "auto").findings
    assert (finding.path, finding.outcome) == ("m.py", "refused")
    assert "flax.core.lift" in finding.message


@pytest.mark.parametrize("form", ["lazy", "auto"])
@pytest.mark.parametrize("imports", ["", "from flax.core import freeze\n", "from my import lift\n"])
def test_a_lift_of_ones_own_transform_is_rewritten(form: str, imports: str) -> None:
    files = {"m.py": TRANSFORMS + imports + LIFT.format("own")}
    assert rewrite_in_form(files, form).findings == ()
