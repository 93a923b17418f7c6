"""Which classes must stay Linen because others do."""

from __future__ import annotations

import pytest

from nnx_migrate.model import Outcome
from nnx_migrate.rewrite.cut import cut
from nnx_migrate.rewrite.links import Links, links_of
from nnx_migrate.source.project import Project, parse
from tests.rewrite.projects import LINEN, caller, dense, looped, outcomes, rewrite, texts

REFUSED, REWRITTEN = "refused", "rewritten"


def links(text: str) -> Links:
    return links_of(Project({"m": parse("m", "m.py", LINEN + text)}))


def forced(found: Links, *staying: str, lazy: bool = False) -> dict[str, str]:
    everything, names = frozenset(found.builds), frozenset(staying)
    fixed = frozenset[str]() if lazy else names
    cuts = cut(found, names, everything - names, fixed_classes=fixed)
    return {one.name: one.by for one in cuts}


def test_nothing_is_cut_when_every_class_is_converted() -> None:
    assert forced(links(dense("A") + dense("B", base="A"))) == {}


def test_a_class_whose_base_stays_linen_stays_linen() -> None:
    assert forced(links(dense("A") + dense("B", base="A")), "m.A") == {"m.B": "m.A"}


def test_the_base_of_a_class_that_stays_linen_stays_linen() -> None:
    assert forced(links(dense("A") + dense("B", base="A")), "m.B") == {"m.A": "m.B"}


def test_a_class_that_stays_may_build_an_explicit_one() -> None:
    found = links(dense("Child") + caller("Parent", "Child()(x)"))
    assert forced(found, "m.Parent") == {}


def test_a_class_that_builds_one_that_stays_linen_stays() -> None:
    found = links(dense("Child") + caller("Parent", "Child()(x)"))
    assert forced(found, "m.Child") == {"m.Parent": "m.Child"}


def test_a_class_that_builds_one_that_becomes_lazy_does_not_stay() -> None:
    text = dense("Child") + caller("Parent", "Child()(x)") + caller("Top", "Parent()(x)")
    assert forced(links(text), "m.Child", lazy=True) == {}


MAKES = "def make():\n    return Child()\n\n\n"


def test_a_class_that_a_factory_function_builds_a_lazy_one_for_does_not_stay() -> None:
    text = dense("Child") + MAKES + caller("Parent", "make()(x)")
    assert forced(links(text), "m.Child", lazy=True) == {}
    assert forced(links(text), "m.Child") == {"m.Parent": "m.Child"}


def test_a_class_that_another_function_builds_a_lazy_one_for_stays() -> None:
    text = dense("Child") + MAKES.replace("Child()", "[Child()]") + caller("Parent", "make()[0](x)")
    assert forced(links(text), "m.Child", lazy=True) == {"m.Parent": "m.Child"}


def test_a_class_that_holds_one_that_stays_linen_as_a_value_stays_linen() -> None:
    found = links(dense("Child") + caller("Parent", "nn.remat(Child)()(x)"))
    assert forced(found, "m.Child") == {"m.Parent": "m.Child"}


@pytest.mark.parametrize(
    "body",
    [
        "nn.remat(Child)()(x)",
        "nn.scan(nn.remat(Child), length=2)()(x)",
        "(nn.remat(Child) if x.ndim else Child)()(x)",
        "partial(Child, 3)()(x)",
    ],
)
def test_a_class_that_only_calls_what_it_makes_of_a_lazy_one_does_not_stay(body: str) -> None:
    found = links("from functools import partial\n" + dense("Child") + caller("Parent", body))
    assert forced(found, "m.Child", lazy=True) == {}


@pytest.mark.parametrize(
    "body", ["make(nn.remat(Child))(x)", "{1: Child}[1]()(x)", "nn.jit(Child)()(x)"]
)
def test_a_class_that_does_more_with_a_lazy_one_as_a_value_stays(body: str) -> None:
    found = links(dense("Child") + caller("Parent", body))
    assert forced(found, "m.Child", lazy=True) == {"m.Parent": "m.Child"}


def test_a_class_that_is_handed_to_another_is_built_by_it() -> None:
    text = dense("Child") + dense("Parent") + dense("Other")
    found = links(text + "def make():\n    return Parent(block=Child), Other()\n")
    assert found.builds["m.Parent"] == ("m.Child",)
    assert found.holds["m.Parent"] == ("m.Child",)
    assert found.builds["m.Other"] == ()


def test_an_instance_that_is_handed_to_another_is_built_by_it() -> None:
    found = links(dense("Child") + dense("Parent") + "model = Parent(block=Child())\n")
    assert found.builds["m.Parent"] == ("m.Child",)
    assert found.holds["m.Parent"] == ()


def test_who_hands_a_class_on_does_not_hold_it() -> None:
    text = dense("Child") + dense("Parent") + caller("Top", "Parent(block=Child)(x)")
    found = links(text)
    assert found.holds["m.Top"] == ()
    assert found.holds["m.Parent"] == ("m.Child",)


@pytest.mark.parametrize(
    "helper",
    [
        "def helper(x):\n    return Child()(x)\n\n\n",
        "def helper(x):\n    return inner(x)\n\n\ndef inner(x):\n    return Child()(x)\n\n\n",
        "helper = lambda x: Child()(x)\n\n\n",
        "ALL = {'child': Child}\n\n\ndef helper(x):\n    return ALL['child']()(x)\n\n\n",
        "def helper(x):\n    made = Child\n    return made()(x)\n\n\n",
    ],
    ids=["function", "chain", "lambda", "registry", "local"],
)
def test_classes_built_by_functions_a_class_calls_are_built_by_it(helper: str) -> None:
    found = links(dense("Child") + helper + caller("Parent", "helper(x)"))
    assert found.builds["m.Parent"] == ("m.Child",)


def test_annotations_build_nothing() -> None:
    found = links(dense("Child") + caller("Parent", "self.child(x)", "    child: Child\n"))
    assert found.builds["m.Parent"] == ()


def test_cuts_spread_through_several_classes_and_name_each_step() -> None:
    found = links(dense("A") + caller("B", "A()(x)") + caller("C", "{1: B}[1]()(x)"))
    assert forced(found, "m.A") == {"m.B": "m.A", "m.C": "m.B"}


def test_a_cut_ends_at_a_class_that_builds_what_the_cut_makes_lazy() -> None:
    found = links(dense("A") + caller("B", "A()(x)") + caller("C", "B()(x)"))
    assert forced(found, "m.A") == {"m.B": "m.A"}


def test_a_chain_of_cuts_reports_the_class_it_starts_from() -> None:
    held = caller("B", "{1: A}[1]()(x)") + caller("C", "{1: B}[1]()(x)")
    result = rewrite({"m.py": LINEN + looped("A") + held})
    assert outcomes(result) == {"m.A": REFUSED, "m.B": REFUSED, "m.C": REFUSED}
    assert {one.name: one.cut_by for one in result.classes} == {
        "m.A": None,
        "m.B": "m.A",
        "m.C": "m.A",
    }
    cuts = [one for one in result.findings if one.rule == "cut"]
    assert [one.outcome for one in cuts] == [Outcome.REFUSED] * 2
    assert all("convert m.A first" in one.message for one in cuts)


def test_a_class_that_stays_gets_lazy_children_of_a_helper() -> None:
    text = LINEN + dense("A") + "def make(x):\n    return A()(x)\n\n\n" + looped("C", "make(x)")
    result = rewrite({"m.py": text})
    assert outcomes(result) == {"m.A": REWRITTEN, "m.C": REFUSED}
    assert "    return lazy(A)()(x)\n" in texts(result, {"m.py": text})["m.py"]


def test_a_class_that_stays_gets_a_lazy_module_in_a_field() -> None:
    text = LINEN + dense("A") + looped("C", "self.block(x)", "    block: type = None\n")
    text += "def build():\n    return C(block=A())\n"
    result = rewrite({"m.py": text})
    assert outcomes(result) == {"m.A": REWRITTEN, "m.C": REFUSED}
    assert "    return C(block=lazy(A)())\n" in texts(result, {"m.py": text})["m.py"]


def test_a_class_valued_field_that_may_hold_a_linen_class_keeps_its_owner_linen() -> None:
    text = LINEN + looped("Block") + caller("Owner", "self.block()(x)", "    block: type = Block\n")
    result = rewrite({"m.py": text})
    assert outcomes(result) == {"m.Block": REFUSED, "m.Owner": REFUSED}
    assert {one.name: one.cut_by for one in result.classes}["m.Owner"] == "m.Block"


def test_a_class_of_a_file_that_is_only_read_keeps_its_subclasses_linen() -> None:
    result = rewrite(
        {"m.py": "import base\n\n\nclass B(base.A):\n    pass\n"},
        context={"base.py": LINEN + dense("A")},
    )
    assert outcomes(result) == {"m.B": REFUSED}
    assert result.classes[0].cut_by == "base.A"
