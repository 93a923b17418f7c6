"""What the ledger leaves out to be fast cannot be Linen, and what it remembers is still true."""

from __future__ import annotations

from nnx_migrate.ledger import Read, Source, count

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
    read: Read = {}
    sources = [
        Source("a.py", "a", NN + "x = nn.Dense(2)\n"),
        Source("b.py", "b", "from a import nn\n"),
    ]
    assert len(count(sources, None, read).references) == 1
    sources[1] = Source("b.py", "b", "from a import nn\ny = nn.Dense(2)\n")
    assert len(count(sources, None, read).references) == 2
    assert count(sources, None, read) == count(sources)
