"""What the ledger leaves out to be fast cannot be Linen, and what it remembers is still true."""

from __future__ import annotations

import gc
import weakref

from nnx_migrate.ledger import Read, Source, count
from nnx_migrate.ledger.project import Project

NN = "import flax.linen as nn\n"


def places(*sources: Source) -> list[tuple[str, int, str]]:
    return [(one.path, one.line, one.symbol) for one in count(sources).references]


def test_an_alias_in_a_class_in_another_file_is_followed() -> None:
    layers = Source("a.py", "a", NN + "class Layers:\n    dense = nn.Dense\n")
    user = Source("b.py", "b", "from a import Layers\nL = Layers\nx = L.dense(3)\n")
    assert ("b.py", 3, "flax.linen.Dense") in places(layers, user)


def test_a_chain_of_aliases_against_the_order_of_the_text_is_followed() -> None:
    text = "def f():\n    return C.act\nclass C:\n    act = relu\n" + NN + "relu = nn.relu\n"
    assert ("a.py", 2, "flax.linen.relu") in places(Source("a.py", "a", text))


def test_a_package_that_is_imported_whole_leads_to_its_modules() -> None:
    sources = (
        Source("p/__init__.py", "p", ""),
        Source("p/m.py", "p.m", NN),
        Source("u.py", "u", "import p.m\nimport p\nx = p.m.nn.Dense(2)\n"),
    )
    assert ("u.py", 3, "flax.linen.Dense") in places(*sources)


def test_imports_on_one_line_and_over_several_ones_are_seen() -> None:
    layers = Source("a.py", "a", NN + "Dense = nn.Dense\n")
    for text in (
        "import os; from a import Dense\n",
        "from a \\\n    import Dense\n",
        "from a import (  # from z import y\n    # why\n    Dense,\n)\n",
        "if True: from a import Dense\n",
    ):
        user = Source("b.py", "b", f"{text}Dense(2)\n")
        assert places(layers, user)[-1][0] == "b.py", text


def test_a_file_that_changed_between_two_counts_is_read_again() -> None:
    read = Read()
    sources = [
        Source("a.py", "a", NN + "x = nn.Dense(2)\n"),
        Source("b.py", "b", "from a import nn\n"),
    ]
    assert len(count(sources, None, read).references) == 1
    sources[1] = Source("b.py", "b", "from a import nn\ny = nn.Dense(2)\n")
    assert len(count(sources, None, read).references) == 2
    assert count(sources, None, read) == count(sources)


PARTS = (
    Source(
        "base.py",
        "base",
        "class Runs:\n    def run(self, v, x):\n        return self.apply(v, x)\n",
    ),
    Source("layers.py", "layers", NN + "from base import *\n__all__ = ['Net', 'nn']\n"),
    Source(
        "net.py",
        "net",
        "from layers import nn\nfrom base import Runs\nclass Net(nn.Module, Runs):\n    width: int = 3\n",
    ),
    Source(
        "other.py", "other", NN + "from base import Runs\ndef f(r: Runs):\n    return r.init(0)\n"
    ),
    Source(
        "train.py", "train", "import net\nfrom layers import *\nm = net.Net()\nm.apply({}, 1)\n"
    ),
    Source("broken.py", "broken", NN + "x = (\n"),
)


def test_a_count_in_parts_is_the_count_of_the_whole() -> None:
    whole = count(PARTS)
    assert [one.symbol for one in whole.call_sites] == ["init", "apply"]
    for size in (0, 40, 100, 150):
        assert count(PARTS, at_once=size) == whole, size


def test_a_class_that_only_another_part_makes_a_module_counts_as_one_that_may_be() -> None:
    without = count([one for one in PARTS if one.module != "net"], at_once=0)
    assert [one.path for one in without.call_sites] == ["train.py"]
    place, _ = count(PARTS, at_once=0).call_sites
    assert (place.path, place.symbol, place.certain) == ("other.py", "init", False)


def test_only_so_many_characters_of_trees_are_held() -> None:
    project = Project(PARTS)
    first = project.tree(PARTS[0])
    project.trim(len(PARTS[0].text))
    assert project.tree(PARTS[0]) is first
    project.trim(len(PARTS[0].text) - 1)
    assert project.tree(PARTS[0]) is not first


def test_what_a_caller_keeps_for_later_counts_is_not_let_go() -> None:
    project = Project(PARTS, Read())
    first = project.tree(PARTS[0])
    project.trim(0)
    assert project.tree(PARTS[0]) is first


def test_files_that_import_each_other_count_alike_whichever_is_read_first() -> None:
    sources = [
        Source("p/__init__.py", "p", "from p.a import *\nfrom p.b import *\n"),
        Source("p/a.py", "p.a", NN + "from p import Small\nclass Big(Small):\n    pass\n"),
        Source("p/b.py", "p.b", NN + "import p\nclass Small(nn.Module):\n    n: int = 3\n"),
        Source(
            "p/c.py", "p.c", "from p import Big, Small, nn\nBig(2)\nSmall(2).init(0)\nnn.Dense(1)\n"
        ),
        Source(
            "p/a_test.py", "p.a_test", "import p\np.Big(2).apply({})\np.b.p.a.Big(2).apply({})\n"
        ),
    ]
    whole = count(sources)
    assert [one.certain for one in whole.call_sites] == [True, True, True]
    assert len(whole.constructors) == 4
    for size in (0, 60, 120):
        assert count(sources, at_once=size) == whole, size
    renamed = [Source(f"x{n}.py", one.module, one.text) for n, one in enumerate(sources[::-1])]
    assert len(count(renamed).constructors) == 4


def test_files_that_are_let_go_leave_nothing_for_the_collector() -> None:
    project = Project(PARTS)
    trees = [weakref.ref(unit.tree) for one in PARTS if (unit := project.unit(one.path))]
    gc.disable()
    try:
        project.trim(0)
        assert [tree() for tree in trees] == [None] * 5
    finally:
        gc.enable()
