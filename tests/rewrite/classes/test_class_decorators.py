"""Decorators of the class statement."""

from __future__ import annotations

import pytest

from tests.rewrite.classes.support import converted, loaded, refusal

BODY = """\
class M(nn.Module):
    width: int = 2

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)
"""

WRAPPING = """\
def noting(cls):
    original = cls.__init__

    def init(self, *args, **kwargs):
        self.noted = {one.name: getattr(self, one.name, None) for one in dataclasses.fields(self)}
        self.given = (args, tuple(kwargs))
        original(self, *args, **kwargs)

    cls.__init__ = init
    return cls


@noting
"""

REGISTERING = """\
KNOWN = {}


def register(name):
    def add(cls):
        KNOWN[name] = cls
        return cls

    return add


@register("m")
"""


def test_a_decorator_that_wraps_the_constructor_is_given_the_fields_alone() -> None:
    text = converted(WRAPPING + BODY)
    assert "@nnm.class_decorator(noting, sizes=('in_features',))\nclass M(nnx.Module):" in text
    with loaded(text, "decorated") as module:
        made = module.M(3, in_features=4, rngs=module.nnx.Rngs(0))
    assert made.noted == {"width": 2}
    assert made.given == ((3,), ())
    assert made.Dense_0.kernel.shape == (4, 3)


def test_a_decorator_that_only_registers_the_class_stays() -> None:
    text = converted(REGISTERING + BODY)
    assert '@register("m")\nclass M(nnx.Module):' in text
    assert "class_decorator" not in text


def test_a_decorator_that_hands_the_class_on_is_adapted() -> None:
    text = converted("def same(cls):\n    return keep(cls)\n\n\n@same\n" + BODY)
    assert "@nnm.class_decorator(same, sizes=('in_features',))" in text


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("import wrapt\n\n\n@wrapt.decorator\n", "wrapt.decorator"),
        ("@jax.tree_util.register_pytree_node_class\n", "jax.tree_util.register_pytree_node_class"),
        ("made = partial(dataclasses.dataclass, kw_only=True)\n\n\n@made\n", "made"),
        ("def d(cls):\n    return dataclasses.dataclass(cls)\n\n\n@d\n", "d"),
    ],
)
def test_a_decorator_nobody_understands_is_refused(head: str, name: str) -> None:
    found = refusal(head + BODY)
    assert found.reason == f"what the class decorator {name} does with the class is not known"
