"""Which classes have a lazy form, and which sizes ``lazy`` is told, and which their names tell it."""

from __future__ import annotations

import re

import pytest

from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.lazy_form import NoLazyForm, check_fixed_parameters, declarations
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.project import Project, parse
from tests.rewrite.outside.converting import HEAD, convert_modules

GRAPHS = """\
import flax.linen as nn
class Net(nn.Module):
    def __call__(self, graphs):
        return graphs
"""
TOLD_BY_NAME = {
    "its first input": SizeArgument("in_features", argument="x"),
    "an input whose plain name is taken": SizeArgument("input_x_features", argument="x"),
    "another input": SizeArgument("train_features", argument="train"),
    "a shape": SizeArgument("x_shape", argument="x", axis=None),
    "an item of an input": SizeArgument("x_1_features", argument="x[1]"),
    "a submodule's first input": SizeArgument("head_in_features", submodule="head"),
    "a class's own in_features": SizeArgument(
        "head_in_features", argument="hidden", submodule="head"
    ),
    "a cell's input": SizeArgument("cell_in_features", argument="inputs", submodule="cell"),
    "another input of a submodule": SizeArgument(
        "encoder_0_mask_features", argument="mask", submodule="encoder_0"
    ),
    "a shape of a submodule's": SizeArgument(
        "a_b_y_shape", argument="y", axis=None, submodule="a/b"
    ),
}
DECLARED = {
    "another axis": (SizeArgument("depth", argument="x", axis=1), 'depth=Size("x", 1)'),
    "another name": (SizeArgument("my_x_features", argument="x"), 'my_x_features=Size("x")'),
    "a submodule whose name reads as a plain one that is taken": (
        SizeArgument("input_x_features", argument="x", submodule="input"),
        'input_x_features=Size("x", of="input")',
    ),
    "another method": (
        SizeArgument("z_features", method="encode", argument="z"),
        'z_features=Size("z", method="encode")',
    ),
    "a layer's input that its name does not name": (
        SizeArgument("attn_in_kv_features", argument="inputs_k", submodule="attn"),
        'attn_in_kv_features=Size("inputs_k", of="attn")',
    ),
    "a cell's carry": (
        SizeArgument("cell_in_features", argument="carry", submodule="cell"),
        'cell_in_features=Size("carry", of="cell")',
    ),
    "a submodule that reads as an input of its own": (
        SizeArgument("x_features", submodule="layer"),
        'x_features=Size(of="layer")',
    ),
    "a field of one of several inputs": (
        SizeArgument("nodes_features", argument="x.nodes"),
        'nodes_features=Size("x.nodes")',
    ),
}


@pytest.mark.parametrize("size", TOLD_BY_NAME.values(), ids=TOLD_BY_NAME)
def test_what_a_name_tells_is_not_written(size: SizeArgument) -> None:
    new, _ = convert_modules({"m": f"{HEAD}m = MLP(4)\n"}, sizes={"m.MLP": (size,)})
    assert new["m"] == f"{HEAD}m = lazy(MLP)(4)\n"


@pytest.mark.parametrize(("size", "text"), DECLARED.values(), ids=DECLARED)
def test_what_no_name_tells_is_declared(size: SizeArgument, text: str) -> None:
    new, _ = convert_modules({"m": f"{HEAD}m = MLP(4)\n"}, sizes={"m.MLP": (size,)})
    assert new["m"] == f"{HEAD}m = lazy(MLP, {text})(4)\n"


def test_a_field_of_the_only_input_is_told_by_its_name() -> None:
    sizes = {"m.Net": (SizeArgument("nodes_features", argument="graphs.nodes"),)}
    new, _ = convert_modules({"m": f"{GRAPHS}m = Net()\n"}, ["m.Net"], sizes)
    assert new["m"] == f"{GRAPHS}m = lazy(Net)()\n"


def test_a_plain_name_that_is_another_inputs_is_declared() -> None:
    head = GRAPHS.replace("self, graphs", "self, x, input_x")
    sizes = {"m.Net": (SizeArgument("input_x_features", argument="x"),)}
    new, _ = convert_modules({"m": f"{head}m = Net()\n"}, ["m.Net"], sizes)
    assert 'lazy(Net, input_x_features=Size("x"))()' in new["m"]


def test_a_field_of_an_input_with_the_name_of_that_input_is_declared() -> None:
    sizes = {"m.Net": (SizeArgument("graphs_features", argument="graphs.graphs"),)}
    new, _ = convert_modules({"m": f"{GRAPHS}m = Net()\n"}, ["m.Net"], sizes)
    assert 'lazy(Net, graphs_features=Size("graphs.graphs"))()' in new["m"]


def net(body: str) -> ClassInfo:
    """A class ``Net`` of some fields and methods."""
    text = f"import flax.linen as nn\nclass Net(nn.Module):\n    {body}\n"
    return Project({"m": parse("m", "m.py", text)}).linen["m.Net"]


CALL = "\n    def __call__(self, x):\n        return x"


@pytest.mark.parametrize("name", ["hidden_features", "patch_shape", "with_x"])
def test_a_class_with_a_field_by_keyword_alone_that_reads_as_a_size_has_no_lazy_form(
    name: str,
) -> None:
    cls = net(f"{name}: int = nn.field(kw_only=True){CALL}")
    with pytest.raises(NoLazyForm, match=f"the field {name} has the name of a size"):
        declarations(cls, ())


def test_a_class_whose_size_has_the_name_of_a_field_has_no_lazy_form() -> None:
    size = SizeArgument("in_features", argument="x")
    with pytest.raises(NoLazyForm, match="the size in_features has the name of a field"):
        declarations(net(f"in_features: int{CALL}"), (size,))


@pytest.mark.parametrize("star", ["*args", "**kwargs"])
def test_a_class_whose_constructor_takes_any_arguments_has_no_lazy_form(star: str) -> None:
    cls = net(f"def __init__(self, {star}):\n        pass{CALL}")
    with pytest.raises(NoLazyForm, match=f"its constructor takes {re.escape(star)}"):
        check_fixed_parameters(cls)


def test_any_other_class_has_one() -> None:
    cls = net(f"def __init__(self, width, *, depth=2):\n        pass{CALL}")
    check_fixed_parameters(cls)
    assert declarations(cls, (SizeArgument("in_features", argument="x"),)) == {}


@pytest.mark.parametrize("name", ["hidden_features", "patch_shape", "with_x"])
def test_a_class_without_a_lazy_form_is_in_doubt_where_code_around_builds_it(name: str) -> None:
    head = HEAD.replace("features: int", f"{name}: int = nn.field(kw_only=True)", 1)
    _, results = convert_modules({"m": f"{head}m = MLP({name}=4)\n"})
    assert f"the field {name} has the name of a size" in [one.reason for one in results["m"].doubts]
