"""Fields that are lists, tuples or dicts of modules: Linen registers each under a name of its own."""

from __future__ import annotations

import numpy as np
import pytest
from flax import nnx

from nnx_migrate import nn as nnm
from tests.rewrite.classes.support import converted
from tests.rewrite.running import migrated as migrated_file
from tests.rewrite.running import module_of

SOURCE = """\
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import flax.linen as nn


class Tower(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


class Towers(nn.Module):
    towers: ANNOTATION

    @nn.compact
    def __call__(self, x):
        parts = self.towers.values() if hasattr(self.towers, "values") else self.towers
        for tower in parts:
            x = tower(x)
        return x
"""
X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)


@pytest.mark.parametrize(
    ("annotation", "is_dict"),
    [
        ("Sequence[nn.Module]", False),
        ("list[Tower]", False),
        ("tuple[Tower, ...]", False),
        ("Optional[Sequence[Tower]] = None", False),
        ("Mapping[str, nn.Module]", True),
        ("dict[str, Tower] | None = None", True),
    ],
)
def test_submodules_have_linens_paths_and_the_field_reads_as_before(
    annotation: str, is_dict: bool
) -> None:
    source = SOURCE.replace("ANNOTATION", annotation)
    with (
        module_of("linen_side", source) as old,
        module_of("nnx_side", migrated_file(source)) as new,
    ):
        keys = ["a", "b"] if is_dict else [0, 1]

        def towers(build):  # type: ignore[no-untyped-def]
            found = [build(5, 6), build(4, 5)]
            return dict(zip(keys, found, strict=True)) if is_dict else found

        theirs = old.Towers(towers(lambda width, _: old.Tower(width)))
        ours = new.Towers(
            towers(lambda width, size: new.Tower(width, in_features=size, rngs=nnx.Rngs(0))),
            rngs=nnx.Rngs(0),
        )
        values = nnm.variables_of(ours)
        assert set(values["params"]) == {f"towers_{key}" for key in keys}
        np.testing.assert_array_equal(ours(X), theirs.apply(values, X))


@pytest.mark.parametrize("annotation", ["Sequence[int]", "dict[str, Any]", "tuple[int, ...]"])
def test_containers_of_other_things_are_frozen_or_kept(annotation: str) -> None:
    body = f"class Layer(nn.Module):\n    sizes: {annotation}\n    def __call__(self, x):\n        return x\n"
    assert "set_submodules" not in converted(body)


CALLED = """\
class Layer(nn.Module):
    parts: {annotation}

    @nn.compact
    def __call__(self, x):
        return {result}
"""


@pytest.mark.parametrize(
    ("annotation", "result", "is_structure"),
    [
        ("Any", "self.parts['a'](self.parts['b'](x))", True),
        ("dict[str, Any]", "self.parts['a'](self.parts['b'](x))", True),
        ("tuple", "self.parts[0](x)", True),
        ("Any", "self.parts(x)", False),
        ("Any", "self.parts['a'] * x", False),
        ("Any", "other.parts['a'](x)", False),
        ("int", "self.parts['a'](x)", False),
    ],
)
def test_a_field_of_any_type_whose_items_are_called_may_hold_modules(
    annotation: str, result: str, is_structure: bool
) -> None:
    text = converted(CALLED.format(annotation=annotation, result=result))
    name = "'parts'" if "'" in result else '"parts"'  # the quotes of the file
    assert (f"set_submodules(self, {name}, parts)" in text) is is_structure


def test_items_that_are_called_may_be_functions_and_one_module_in_several_places() -> None:
    body = CALLED.format(
        annotation="Any", result="self.parts['f'](self.parts['b'](self.parts['a'](x)))"
    )
    source = SOURCE.replace("ANNOTATION", "Any") + "\n\n" + body
    with (
        module_of("linen_side", source) as old,
        module_of("nnx_side", migrated_file(source)) as new,
    ):
        shared = old.Tower(6)
        theirs = old.Layer({"b": shared, "a": shared, "f": np.negative})
        tower = new.Tower(6, in_features=6, rngs=nnx.Rngs(0))
        ours = new.Layer({"b": tower, "a": tower, "f": np.negative}, rngs=nnx.Rngs(0))
        values = nnm.variables_of(ours)
        assert set(values["params"]) == {"parts_a"}
        np.testing.assert_array_equal(ours(X), theirs.apply(values, X))
