"""Which files of a large project are read for their code."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Tally
from nnx_migrate.rewrite import relevant
from tests.rewrite.projects import LINEN, dense, outcomes, rewrite
from tests.rewrite.test_forms import auto, said

MARK = "def marked(cls):\n    cls.mark = 1\n    return cls\n"


@pytest.fixture(autouse=True)
def every_project_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relevant, "_ALL", 0)


def test_a_decorator_is_found_in_a_file_without_a_word_of_flax() -> None:
    files = {"marks.py": MARK, "m.py": "import marks\n" + LINEN + "@marks.marked\n" + dense("A")}
    assert outcomes(rewrite(files)) == {"m.A": "rewritten"}


def test_a_decorator_is_found_behind_a_package_that_hands_it_on() -> None:
    files = {
        "tools/__init__.py": "from .marks import marked\n",
        "tools/marks.py": MARK,
        "m.py": "from tools import marked\n" + LINEN + "@marked\n" + dense("A"),
    }
    assert outcomes(rewrite(files)) == {"m.A": "rewritten"}


def test_a_decorator_of_another_package_keeps_the_class_linen() -> None:
    files = {"marks.py": MARK, "m.py": "import other\n" + LINEN + "@other.thing\n" + dense("A")}
    assert outcomes(rewrite(files)) == {"m.A": "refused"}


def test_a_file_that_imports_modules_by_their_names_is_read() -> None:
    load = "import importlib\n\n\ndef f(name, kind):\n    return vars(importlib.import_module(name))[kind]()\n"
    model = LINEN + dense("A") + "def main(k, x):\n    return A().init(k, x)\n"
    assert said(auto({"load.py": load, "m.py": model})) == {"m.A": "lazy"}


def test_a_file_that_builds_what_a_configuration_names_is_read() -> None:
    load = "import hydra\n\n\ndef f(config):\n    return hydra.utils.instantiate(config)\n"
    model = LINEN + dense("A") + "def main(k, x):\n    return A().init(k, x)\n"
    assert said(auto({"load.py": load, "m.py": model})) == {"m.A": "lazy"}


def test_what_a_file_gives_that_is_not_read_may_be_anything() -> None:
    tools = LINEN + "def kind(function):\n    return function.__annotations__\n"
    model = (
        LINEN
        + dense("A")
        + "class Config:\n    net: A\n\n\ndef main(k, x):\n    return A().init(k, x)\n"
    )
    main = "import config\nfrom tools import kind\n\nprint(kind(config.Config))\n"
    files = {
        "tools.py": tools,
        "m.py": model,
        "config.py": "from m import Config\n",
        "main.py": main,
    }
    assert said(auto(files)) == {"m.A": "lazy"}


@pytest.mark.parametrize(
    "other", ["from load import f\n\nf('m', 'A')\n", "import load\n\nload.NAMES.append('m')\n"]
)
def test_what_a_file_imports_may_be_said_by_one_that_is_not_read(other: str) -> None:
    load = (
        "import importlib\n\nNAMES = ['zoo']\n\n\ndef f(name, kind):\n"
        "    return vars(importlib.import_module(name))[kind]()\n\n\n"
        "def g(kind):\n    return f('zoo', kind), vars(importlib.import_module(NAMES[0]))[kind]()\n"
    )
    model = LINEN + dense("A") + "def main(k, x):\n    return A().init(k, x)\n"
    assert said(auto({"load.py": load, "m.py": model, "other.py": other})) == {"m.A": "lazy"}


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"common.py": LINEN, "m.py": "from common import nn\n\n\n" + dense("A")}, "m.A"),
        ({"common.py": LINEN, "m.py": "from common import *\n\n\n" + dense("A")}, "m.A"),
        (
            {"common.py": "import flax\n", "m.py": "import common\n\nnn = common.flax.linen\n" + dense("A")},
            "m.A",
        ),
        (
            {
                "pkg/__init__.py": "",
                "pkg/common.py": LINEN,
                "pkg/other.py": "",
                "m.py": "import pkg.common, pkg.other\n\nnn = pkg.common.nn\n" + dense("A"),
            },
            "m.A",
        ),
        (
            {
                "pkg/__init__.py": "",
                "pkg/common.py": "from flax import linen as nn\n",
                "pkg/again.py": "from .common import nn as layers\n",
                "pkg/m.py": "from . again import layers as nn\n\n\n" + dense("A"),
            },
            "pkg.m.A",
        ),
    ],
    ids=["a name", "a star", "a module", "one of two modules", "a name handed on"],
)  # fmt: skip
def test_a_file_that_takes_linen_from_another_is_read(files: dict[str, str], name: str) -> None:
    assert outcomes(rewrite(files)) == {name: "rewritten"}


def test_callers_behind_a_factory_of_another_file_count() -> None:
    files = {
        "m.py": LINEN + dense("A"),
        "factory.py": "from m import A\n\n\ndef make():\n    return A()\n",
        "train.py": "from factory import make\n\nmodel = make()\nvariables = model.init(key, x)\n",
        "other.py": "from math import sqrt\n\nmodel = sqrt(2)\nvariables = model.init(key, x)\n",
    }
    assert auto(files).call_sites == Tally(2, rewritten=2)
