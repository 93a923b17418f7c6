"""Classes with an ``__init__`` of their own."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from nnx_migrate import nn as nnm
from nnx_migrate.model import Outcome
from tests.rewrite.classes.support import HEADER, loaded
from tests.rewrite.projects import only, rewrite

IDENTITY = '''class Identity(nn.Module):
    """Returns its input."""

    def __init__({signature}):
        {body}

    def __call__(self, x, *args, **kwargs):
        return x


'''
MODEL = """class Model(nn.Module):
    first: Any = Identity
    second: Any = Identity

    @nn.compact
    def __call__(self, x):
        x = self.first()(x)
        return nn.Dense(3)(self.second(x, width=3)(x))
"""
EMPTY = IDENTITY.format(signature="self, *args, **kwargs", body="pass")


def test_an_init_that_takes_anything_and_does_nothing_stays() -> None:
    text = only(rewrite({"m.py": HEADER + EMPTY})) or ""
    assert "class Identity(nnx.Module):" in text
    assert text.count("def __init__(self, *args, **kwargs):\n        pass\n") == 1
    assert text.count("__init__") == 1


def test_a_model_that_holds_such_a_class_is_linens() -> None:
    x = jax.random.normal(jax.random.key(1), (2, 4))
    source = EMPTY + MODEL.replace("self.second(x, width=3)(x)", "self.second(width=3)(x)")
    after_text = only(rewrite({"m.py": HEADER + source})) or ""
    with loaded(source, "init_before") as before, loaded(after_text, "init_after") as after:
        variables = before.Model().init(jax.random.key(0), x)
        made = nnm.build(after.Model, in_features=4, rngs=jax.random.key(0))
        np.testing.assert_array_equal(made(x), before.Model().apply(variables, x))
    assert jax.tree.structure(nnm.variables_of(made)) == jax.tree.structure(dict(variables))


@pytest.mark.parametrize(
    ("signature", "body"),
    [
        ("self", "pass"),
        ("self, width=3", "pass"),
        ("self, **kwargs", "self.width = 3"),
        ("self, **kwargs", "super().__init__()"),
    ],
)
def test_any_other_init_is_refused(signature: str, body: str) -> None:
    source = IDENTITY.format(signature=signature, body=body)
    result = rewrite({"m.py": HEADER + source})
    assert [(one.outcome, one.reason) for one in result.classes] == [
        (Outcome.REFUSED, "the class defines __init__")
    ]


@pytest.mark.parametrize(
    "addition", ["    width: int = 3\n", "    def setup(self):\n        pass\n"]
)
def test_with_fields_or_setup_it_is_refused(addition: str) -> None:
    source = EMPTY.replace('    """Returns its input."""\n', addition)
    result = rewrite({"m.py": HEADER + source})
    assert [one.outcome for one in result.classes] == [Outcome.REFUSED]
