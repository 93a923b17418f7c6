"""What names and classes of a project refer to."""

from __future__ import annotations

import ast
from pathlib import PurePosixPath

import pytest

from nnx_migrate.source.names import canonical, relative_target
from nnx_migrate.source.project import Project, Scope, module_name, parse


def project(**files: str) -> Project:
    return Project({name: parse(name, f"{name}.py", text) for name, text in files.items()})


def resolved(text: str, expression: str, **others: str) -> str | None:
    found = project(m=text, **others)
    node = ast.parse(expression, mode="eval").body
    return found.resolve(node, Scope(found.modules["m"]))


@pytest.mark.parametrize(
    ("text", "expression", "symbol"),
    [
        ("import flax.linen as nn", "nn.Dense", "flax.linen.Dense"),
        ("import flax", "flax.linen.Dense", "flax.linen.Dense"),
        ("from flax import linen", "linen.Dense", "flax.linen.Dense"),
        ("from flax.linen import Dense as D", "D", "flax.linen.Dense"),
        ("from flax.linen.linear import Dense", "Dense", "flax.linen.Dense"),
        ("from flax.linen import *", "Dense", "flax.linen.Dense"),
        ("from flax.linen import *", "int", None),
        ("import flax.linen as nn\nD = nn.Dense", "D", "flax.linen.Dense"),
        ("if x:\n    import flax.linen as nn", "nn.Dense", "flax.linen.Dense"),
        ("class A:\n    pass", "A", "m.A"),
        ("import flax.linen as nn\nnn = 3", "nn.Dense", None),
        ("import torch.nn as nn", "nn.Dense", "torch.nn.Dense"),
        ("", "nn.Dense", None),
        ("import flax.linen as nn", "nn.Dense()", None),
    ],
)
def test_names_resolve_by_what_they_are_bound_to(
    text: str, expression: str, symbol: str | None
) -> None:
    assert resolved(text, expression) == symbol


def test_re_exports_are_followed_to_where_a_symbol_is_defined() -> None:
    others = {"a": "from b import Layer\n", "b": "class Layer:\n    pass\n"}
    assert resolved("from a import Layer as L", "L", **others) == "b.Layer"
    assert resolved("from a import *", "Layer", **others) in ("b.Layer", "a.Layer")


def test_a_cycle_of_imports_ends() -> None:
    assert resolved("from a import X", "X", a="from m import X\n") is not None


def test_private_modules_of_linen_are_linen() -> None:
    assert canonical("flax.linen.attention.SelfAttention") == "flax.linen.SelfAttention"
    assert canonical("flax.linen.partitioning.remat") == "flax.linen.partitioning.remat"


def test_stars_of_stars_give_names_and_may_meet() -> None:
    files = {
        "a": "from b import *\nfrom m import *",
        "b": "from a import *\nimport flax.linen as nn",
    }
    assert resolved("from a import *", "nn.Dense", **files) == "flax.linen.Dense"
    assert resolved("from a import *", "other.Dense", **files) is None


@pytest.mark.parametrize(
    ("package", "two"),
    [
        ("from p.one import *\nfrom p.two import *", "from p import Layer"),
        ("from p.one import Layer\nfrom p.two import *", "from p import Layer"),
        ("from p.one import *\nfrom p.two import *", "from p.three import Layer"),
        ("from p.one import *\nfrom p.two import *", "from p.three import *"),
    ],
    ids=["of a star", "of an import", "at one remove", "by a star of its own"],
)
def test_a_star_brings_back_what_its_module_has_of_the_package(package: str, two: str) -> None:
    files = {
        "p": package,
        "p.one": "from p.net import Layer",
        "p.two": f"{two}\nUSED = Layer",
        "p.three": "from p import Layer",
        "p.net": "class Layer:\n    pass",
    }
    for text in ("from p import Layer", "from p.two import USED as Layer", "from p import *"):
        assert resolved(text, "Layer", **files) == "p.net.Layer"


def test_relative_imports_start_from_the_package() -> None:
    assert relative_target("a.b", 1, "c") == "a.b.c"
    assert relative_target("a.b", 2, "c") == "a.c"
    assert relative_target("a.b", 0, "c") == "c"


@pytest.mark.parametrize(
    ("path", "name"),
    [("a/b.py", ("a.b", False)), ("a/__init__.py", ("a", True)), ("m.py", ("m", False))],
)
def test_module_names_follow_paths(path: str, name: tuple[str, bool]) -> None:
    assert module_name(PurePosixPath(path)) == name


LINEN = "import flax.linen as nn\n"


def test_linen_classes_are_found_through_bases_of_other_files() -> None:
    found = project(
        base=LINEN + "class A(nn.Module):\n    pass\n",
        m="import base\nclass B(base.A):\n    x: int\nclass C:\n    pass\n",
    )
    assert set(found.linen) == {"base.A", "m.B"}
    assert [one.name for one in found.linen["m.B"].mro] == ["m.B", "base.A"]


def test_fields_are_those_of_the_dataclass_in_constructor_order() -> None:
    text = (
        LINEN + "from typing import ClassVar\n"
        "class A(nn.Module):\n    a: int\n    b: int = 2\n"
        "class B(A):\n    K: ClassVar[int] = 1\n    c: int = 3\n    a: int = 5\n    plain = 7\n"
    )
    fields = project(m=text).linen["m.B"].fields
    assert [one.name for one in fields] == ["a", "b", "c"]
    assert [ast.unparse(one.default) for one in fields if one.default] == ["5", "2", "3"]


def test_nested_and_local_classes_have_qualified_names() -> None:
    text = (
        LINEN
        + "class A(nn.Module):\n    class In(nn.Module):\n        pass\ndef f():\n    class L(nn.Module):\n        pass\n"
    )
    assert set(project(m=text).linen) == {"m.A", "m.A.In", "m.f.<locals>.L"}


LOCAL = """\
def f():
    class Base(nn.Module):
        pass
    def g():
        class Inner(Base):
            pass
"""


def test_a_local_class_is_known_in_the_functions_inside() -> None:
    found = project(m=LINEN + LOCAL).linen
    assert found["m.f.<locals>.g.<locals>.Inner"].parents == (found["m.f.<locals>.Base"],)


def test_every_statement_of_a_repeated_name_is_a_class_of_its_own() -> None:
    text = (
        LINEN
        + "class A(nn.Module):\n    a: int\nclass B(A):\n    pass\nclass A(nn.Module):\n    b: int\n"
    )
    found = project(m=text).linen
    assert [(one.qualname, one.is_ambiguous) for one in found.values()] == [
        ("m.A", True),
        ("m.A", True),
        ("m.B", False),
    ]
    assert {name: one.fields[0].name for name, one in found.items() if name != "m.B"} == {
        "m.A:1": "a",
        "m.A": "b",
    }
    assert found["m.B"].bases == (None,)


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("import flax.linen as nn", ("flax.linen.Dense",)),
        (
            "try:\n    import flax.linen as nn\nexcept ImportError:\n    nn = None",
            ("flax.linen.Dense",),
        ),
        (
            "if x:\n    import flax.linen as nn\nelse:\n    import torch.nn as nn",
            ("flax.linen.Dense", "torch.nn.Dense"),
        ),
        ("nn = object()", ("m.nn.Dense",)),
        ("for nn in x:\n    pass", ()),
    ],
)
def test_a_name_has_a_meaning_for_each_of_its_bindings(text: str, symbols: tuple[str, ...]) -> None:
    found = project(m=text)
    node = ast.parse("nn.Dense", mode="eval").body
    assert found.meanings(node, Scope(found.modules["m"])) == symbols


@pytest.mark.parametrize(
    ("body", "symbol"),
    [
        ("nn.Dense.__call__ = f", "flax.linen.Dense"),
        ("nn.Dense.limits[0] = f", "flax.linen.Dense"),
        ("del nn.Dense.bias", "flax.linen.Dense"),
        ("nn, _ = f", None),
    ],
)
def test_setting_a_part_of_a_name_binds_it_neither_in_a_function_nor_in_its_file(
    body: str, symbol: str | None
) -> None:
    node = ast.parse("nn.Dense", mode="eval").body
    inside = project(m=f"import flax.linen as nn\n\n\ndef f():\n    {body}\n").modules["m"]
    (function,) = [one for one in inside.tree.body if isinstance(one, ast.FunctionDef)]
    found = project(m=f"import flax.linen as nn\n\n\n{body}\n")
    assert found.resolve(node, Scope(inside).enter(function)) == symbol
    assert symbol in (None, found.resolve(node, Scope(found.modules["m"])))
