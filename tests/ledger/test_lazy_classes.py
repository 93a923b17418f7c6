"""What takes ``lazy(Class)`` has Linen's methods, and no Linen is left there."""

from __future__ import annotations

from nnx_migrate.ledger import Count, Source, count

HEAD = """\
import flax.linen as nn
from flax import nnx
from nnx_migrate.linen import lazy

class New(nnx.Module):
    def __init__(self, size, *, rngs): ...

def shown(model: New, key):
    return model.init(key)

"""


def counted(body: str, *more: Source, at_once: int = 1000) -> Count:
    return count([Source("m.py", "m", HEAD + body), *more], at_once=at_once)


def test_calls_of_a_lazy_form_are_neither_left_nor_stale() -> None:
    found = counted("model = lazy(New)(3)\nmodel.init(0)\nfit(apply_fn=model.apply)\n")
    assert (found.call_sites, found.handles, found.stale, found.constructors) == ((), (), (), ())


def test_an_annotation_tells_no_class_from_its_lazy_form() -> None:
    assert [one.symbol for one in counted("New(3, rngs=r)\n").stale] == ["init"]
    assert counted("lazy(New)(3)\n").stale == ()
    other = Source(
        "other.py", "other", "import nnx_migrate.linen as nl\nimport m\nnl.lazy(m.New)\n"
    )
    flax = Source("other.py", "other", "import flax\n" + other.text)
    assert counted("", flax).stale == counted("", flax, at_once=0).stale == ()


def test_what_is_surely_of_the_class_is_stale_beside_its_lazy_form() -> None:
    found = counted("lazy(New)(3)\nNew(3, rngs=r).apply({})\n")
    assert [one.symbol for one in found.stale] == ["apply"]


def test_an_annotation_of_another_class_says_what_it_did() -> None:
    text = "class Other(nnx.Module): ...\ndef f(one: Other): one.init(0)\nlazy(New)(3)\n"
    assert [one.scope for one in counted(text).stale] == ["m.f"]
