"""Lists and dicts that ``setup`` keeps, whatever makes them: Linen freezes them."""

from __future__ import annotations

import pytest

from tests.rewrite.classes.support import converted
from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

HEAD = (
    LINEN
    + """
import copy
import dataclasses
import typing

import jax
import jax.numpy as jnp
import numpy as np

WIDTHS = [1, 2]
TABLE = {"a": [1, 2]}


@dataclasses.dataclass(frozen=True)
class Config:
    widths: list[int] = dataclasses.field(default_factory=lambda: [5])
    width: int = 4


def counted(d):
    out = []
    for i in range(d):
        out.append(i)
    return out

"""
)
NET = """
class Net{number}(nn.Module):
    dims: tuple = (3, 4)
    d: int = 4
    cfg: Config = Config()
    other: "typing.Any" = Config()

    def made(self):
        return [self.d, 2]

    def setup(self):
        {before}
        self.kept = {value}
        self.out = nn.Dense(2)

    def __call__(self, x):
        SEEN[{number}] = (type(self.kept).__name__, self.kept)
        return self.out(x)

"""
MAIN = """
SEEN = {}


def main():
    x = jnp.ones((2, 3))
"""
CONTAINERS = (
    *("list(self.dims)", "[self.d] * 2", "list(self.dims) + [2]", "sorted(self.dims)"),
    *("self.made()", "counted(self.d)", "np.asarray([3, 4]).tolist()", "dict(a=1)", "TABLE"),
    *("[1] if self.d else [2]", "None or [1]", "([1], 2)", "WIDTHS", "WIDTHS[1:]"),
    *("copy.copy(WIDTHS)", "WIDTHS.copy()", "self.cfg.widths", "{'a': [1]}"),
    *("TABLE['a']", "([self.d, 1], [2])[0]", "self.other.widths", "[*self.dims][::-1]"),
)
OTHERS = (
    "self.dims",
    "self.d * 2",
    "self.cfg.width",
    "tuple([1])",
    "len(WIDTHS)",
    "max(self.dims)",
)


def test_what_is_kept_has_linens_type() -> None:
    values = [("", one) for one in (*CONTAINERS, *OTHERS)]
    values += [(f"value = {one}", "value") for one in CONTAINERS]
    nets = "".join(
        NET.format(number=i, before=before, value=one) for i, (before, one) in enumerate(values)
    )
    runs = "".join(
        f"    Net{i}().init(jax.random.key(0), x)\n    print(SEEN[{i}])\n"
        for i in range(len(values))
    )
    forms = printed_alike(HEAD + nets + MAIN + runs)
    assert {*forms.values()} == {"explicit"}


@pytest.mark.parametrize("value", OTHERS)
def test_what_is_no_container_stays_as_it_is(value: str) -> None:
    code = converted(HEAD + NET.format(number=0, before="", value=value))
    assert "self.kept = nnm" not in code


PARTS = """
class Parts(nn.Module):
    def setup(self):
        self.parts = jnp.split(jnp.arange(4.0), 2)
        self.out = nn.Dense(2)

    def __call__(self, x):
        return jnp.stack((*self.parts, self.out(x)[0])), jnp.stack(self.parts + (self.out(x)[0],))


def main():
    x = jnp.ones((2, 3))
    print(Parts().init_with_output(jax.random.key(0), x))
"""


def test_a_list_of_arrays_that_jax_gives_is_frozen() -> None:
    assert printed_alike(HEAD + PARTS) == {"m.Parts": "explicit"}


BY_NAME = """
class Net(nn.Module):
    n: int = 2

    def setup(self):
        for k in range(self.n):
            setattr(self, f"kept_{{k}}", {value})
        self.out = nn.Dense(2)

    def __call__(self, x):
        for k in range(self.n):
            kept = getattr(self, f"kept_{{k}}")
            x = {use}
        return self.out(x)


def main():
    x = jnp.ones((2, 3))
    variables = Net().init(jax.random.key(0), x)
    print(variables, jax.jit(Net().apply)(variables, x))
"""


@pytest.mark.parametrize(
    ("value", "use", "form"),
    [
        ("[k, 1]", "x * (3 if isinstance(kept, tuple) else 5)", "explicit"),
        ("dict(a=k)", "x * (5 if isinstance(kept, dict) else 3)", "explicit"),
        (
            "[jnp.ones((2, 3)), jnp.ones((2, 3)) * 2]",
            "x * kept[1] * isinstance(kept, tuple)",
            "explicit",
        ),
        ("(k, 1)", "x * kept[1]", "explicit"),
        ("[nn.Dense(3), nn.Dense(3)]", "kept[1](kept[0](x))", "lazy"),
        ("{'a': nn.Dense(3)}", "kept['a'](x)", "lazy"),
    ],
)
def test_setattr_freezes_as_an_assignment_does(value: str, use: str, form: str) -> None:
    assert printed_alike(HEAD + BY_NAME.format(value=value, use=use)) == {"m.Net": form}


MIXED = """
class Net(nn.Module):
    def setup(self):
        self.layers = {"a": nn.Dense(3), 2: nn.Dense(3)}
        self.rates = {"a": 1, 2: 3}

    def __call__(self, x):
        return self.layers[2](self.layers["a"](x) * self.rates[2])


def main():
    net = Net()
    variables = net.init(jax.random.key(0), jnp.ones((2, 3)))
    print(variables, jax.jit(net.apply)(variables, jnp.ones((2, 3))))
"""


def test_keys_of_several_types_are_kept() -> None:
    assert printed_alike(HEAD + MIXED) == {"m.Net": "explicit"}
