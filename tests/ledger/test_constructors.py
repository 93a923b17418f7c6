"""Constructor calls: those of Linen classes, and those that lack the streams of an NNX class."""

from __future__ import annotations

import pytest

from nnx_migrate.ledger import Count, Source, count

HEAD = """\
import functools
import flax.linen as nn
from flax import nnx

class M(nn.Module): ...
class Sub(M): ...
class Plain: ...
class New(nnx.Module):
    def __init__(self, size, *, rngs): ...
class Heir(New): ...
class Open(nnx.Module):
    def __init__(self, size, *, rngs=None): ...
class Early(nnx.Module):
    def __init__(self, rngs, size=3): ...
class Bare(nnx.Module): ...
@functools.wraps
class Marked(nnx.Module): ...

"""


def counted(body: str) -> Count:
    return count([Source("m.py", "m", HEAD + body)])


LINEN = {
    "a class": ("M()", "m.M"),
    "one that inherits": ("f(Sub(features=3))", "m.Sub"),
    "by another name": ("N = M\nN()", "m.M"),
    "one of two names": ("def f(a):\n    N = M\n    return N(a)", "m.M"),
}
NONE = {
    "no module": "Plain()",
    "a layer of flax": "nn.Dense(3)",
    "a parameter": "def f(M):\n    return M()",
    "the class itself": "f(M)",
    "what a call gives": "nn.remat(M)()",
    "one of two kinds": "N = M if a else Plain\nN()",
}
STALE = {
    "without streams": ("New(3)", "m.New"),
    "one that inherits": ("Heir(3)", "m.Heir"),
    "by position": ("Early()", "m.Early"),
}
FRESH = {
    "with streams": "New(3, rngs=r)",
    "by position": "Early(r)",
    "unpacked": "New(3, **o)",
    "unpacked by position": "Early(*o)",
    "with a default": "Open(3)",
    "without a constructor": "Bare()",
    "a decorator may write the constructor": "Marked()",
    "by partial": "functools.partial(New, rngs=r)(3)",
}


@pytest.mark.parametrize(("body", "name"), LINEN.values(), ids=LINEN)
def test_a_call_of_a_linen_class_is_a_constructor_call(body: str, name: str) -> None:
    found = counted(body)
    assert [one.symbol for one in found.constructors] == [name]
    assert found.stale_constructors == ()


@pytest.mark.parametrize("body", NONE.values(), ids=NONE)
def test_other_calls_are_none(body: str) -> None:
    assert counted(body).constructors == ()


@pytest.mark.parametrize(("body", "name"), STALE.values(), ids=STALE)
def test_an_nnx_class_without_its_streams_is_stale(body: str, name: str) -> None:
    found = counted(body)
    assert [one.symbol for one in found.stale_constructors] == [name]
    assert found.constructors == ()


@pytest.mark.parametrize("body", FRESH.values(), ids=FRESH)
def test_an_nnx_class_with_its_streams_is_not(body: str) -> None:
    assert counted(body).stale_constructors == ()


def test_a_class_of_another_file_counts_where_it_is_called() -> None:
    files = [Source("m.py", "m", HEAD), Source("n.py", "n", "import m\n\nmodel = m.Sub()\n")]
    (found,) = count(files).constructors
    assert (found.path, found.line, found.column, found.symbol) == ("n.py", 3, 9, "m.Sub")
