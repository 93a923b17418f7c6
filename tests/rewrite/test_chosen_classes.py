"""Submodules whose class is one of several that need different sizes."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from nnx_migrate.parity import ParityCase, check, instantiate
from tests.rewrite.projects import outcomes, rewrite

HEAD = "from functools import partial\nfrom typing import Any\nimport flax.linen as nn\nimport jax.numpy as jnp\n\n\n"
CROSS = (
    "class Cross(nn.Module):\n"
    "    @nn.compact\n"
    "    def __call__(self, x, y):\n"
    "        return nn.Dense(4)(x) + nn.Dense(4)(y)\n\n\n"
)
ONE = (
    "class One(nn.Module):\n"
    "    width: int = 4\n"
    "    @nn.compact\n"
    "    def __call__(self, x, y=None):\n"
    "        return nn.Dense(self.width)(x)\n\n\n"
)
FLAT = (
    "class Flat(nn.Module):\n"
    "    @nn.compact\n"
    "    def __call__(self, x, y=None):\n"
    "        for size in x.shape[1:]:\n"
    "            x = x * self.param(f'w{size}', nn.initializers.normal(), ())\n"
    "        return x\n\n\n"
)
SCALE = (
    "class Scale(nn.Module):\n"
    "    @nn.compact\n"
    "    def __call__(self, x, y=None):\n"
    "        return x * self.param('scale', nn.initializers.normal(), ())\n\n\n"
)
LOCAL = (
    "class M(nn.Module):\n"
    "    second: bool = False\n"
    "    @nn.compact\n"
    "    def __call__(self, x, y):\n"
    "        cls = {second} if self.second else {first}\n"
    "        x = cls(name='part')(x, y)\n"
    "        return nn.Dense(3)(x)\n"
)
FIELD = (
    "class M(nn.Module):\n"
    "    part: Any = {first}\n"
    "    @nn.compact\n"
    "    def __call__(self, x, y):\n"
    "        return self.part(name='made')(x, y)\n\n\n"
    "class Other(nn.Module):\n"
    "    @nn.compact\n"
    "    def __call__(self, x, y):\n"
    "        return M({second})(x, y)\n"
)


def code(source: str) -> str:
    """The rewritten text; every class is rewritten."""
    result = rewrite({"model.py": HEAD + source})
    assert set(outcomes(result).values()) == {"rewritten"}, result.classes
    return result.files[0].code or ""


def field(first: str, second: str) -> str:
    return FIELD.format(first=first, second=second)


def local(first: str, second: str) -> str:
    return LOCAL.format(first=first, second=second)


CASES: dict[str, tuple[str, str]] = {
    "two that take the same sizes": (
        CROSS + CROSS.replace("Cross", "Twice") + local("Twice", "Cross"),
        "M()",
    ),
    "the first of two that take different ones": (CROSS + ONE + local("One", "Cross"), "M()"),
    "the second of two that take different ones": (CROSS + ONE + local("One", "Cross"), "M(True)"),
    "a whole shape, beside a layer's size": (FLAT + ONE + local("One", "Flat"), "M(True)"),
    "one that needs none": (SCALE + ONE + field("One", "Scale"), "Other()"),
    "the default of a field": (ONE + CROSS + field("One", "Cross"), "M()"),
    "what a caller gives the field": (ONE + CROSS + field("One", "Cross"), "Other()"),
    "a partial in the field": (
        ONE + CROSS + field("One", "partial(One, width=6)") + "\n\nclass Third(Other):\n    pass\n",
        "Other()",
    ),
}


@contextmanager
def module_of(name: str, text: str) -> Iterator[dict[str, Any]]:
    module = types.ModuleType(name)
    sys.modules[name] = module
    try:
        exec(compile(text, f"{name}.py", "exec"), module.__dict__)  # noqa: S102
        yield module.__dict__
    finally:
        del sys.modules[name]


@pytest.mark.parametrize(("source", "model"), CASES.values(), ids=CASES)
def test_the_chosen_class_gets_the_sizes_it_takes(source: str, model: str) -> None:
    draw = np.random.default_rng(0)
    inputs = tuple(draw.normal(size=(2, 3, n)).astype(np.float32) for n in (5, 7))
    result = rewrite({"model.py": HEAD + source})
    with (
        module_of("linen_side", HEAD + source) as before,
        module_of("nnx_side", code(source)) as after,
    ):
        made = eval(model, before)
        migrated = after[type(made).__name__]
        case = ParityCase(
            linen=made,
            nnx=lambda rngs: instantiate(migrated, made, inputs, rngs, map=result.migration_map),
            inputs=inputs,
        )
        report = check(case)
    assert report.verdict in ("identical", "equal_by_rules"), report


def test_sizes_that_all_take_are_passed_as_they_are() -> None:
    text = code(CASES["two that take the same sizes"][0])
    assert "cls(x_features=x_features, y_features=y_features, rngs=rngs)" in text
    assert "nnm.sized" not in text


def test_others_are_offered() -> None:
    text = " ".join(code(CASES["the first of two that take different ones"][0]).split())
    offered = "in_features=x_features, x_features=x_features, y_features=y_features"
    assert f"nnm.sized( cls, {offered} )(rngs=rngs)" in text


REFUSED = {
    "sizes of one name that differ": (
        CROSS
        + CROSS.replace("Cross", "Swapped").replace("x, y)", "y, x)")
        + local("Swapped", "Cross")
    ),
    "the size y_features, which is a field of another": (
        CROSS + ONE.replace("width", "y_features") + local("One", "Cross")
    ),
}


@pytest.mark.parametrize(("problem", "source"), REFUSED.items(), ids=REFUSED)
def test_sizes_that_cannot_be_told_apart_are_refused(problem: str, source: str) -> None:
    found = {one.name: one for one in rewrite({"model.py": HEAD + source}).classes}
    assert found["model.M"].outcome.value == "refused"
    assert found["model.M"].reason == f"the classes that may be built here need {problem}"
