"""Which files of a large project are read for their code."""

from __future__ import annotations

import pytest

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
