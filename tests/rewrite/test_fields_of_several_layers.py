"""Fields that hold one of several layers, chosen by a test, a function, a table or whoever builds the class."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

PROGRAM = (
    LINEN
    + """\
from functools import partial
from typing import Any
import jax
import jax.numpy as jnp
{around}

class Block(nn.Module):
    width: int
    norm: Any

    @nn.compact
    def __call__(self, x):
        return nn.relu(self.norm()(nn.Dense(self.width)(x))) + self.norm(name="last")(x)


class Net(nn.Module):
    kind: str = "batch"

    @nn.compact
    def __call__(self, x, train=True):
        {choice}
        x = norm(name="first")(x)
        x = Block(x.shape[-1], {given})(x)
        return nn.Dense(2)(x)


def main():
    x = jax.random.normal(jax.random.key(1), (3, 4))
    for kind in ("batch", "layer", "group"):
        model = Net(kind)
        variables = model.init(jax.random.key(0), x)
        print(jax.tree.map(lambda one: (one.shape, float(one.sum())), variables))
        for train in (True, False):
            y, changed = model.apply(variables, x, train, mutable=["batch_stats"])
            print(y.sum(), jax.tree.map(jnp.sum, changed))
"""
)
BATCH = "partial(nn.BatchNorm, use_running_average=not train, momentum=0.5)"
NORM_OF = """

def norm_of(kind, train, dtype=None):
    if kind == "batch":
        norm = partial(nn.BatchNorm, use_running_average=not train, dtype=dtype)
    elif kind == "group":
        norm = partial(nn.GroupNorm, num_groups=2, dtype=dtype)
    elif kind == "layer":
        return nn.LayerNorm
    else:
        raise NotImplementedError(kind)
    return norm

"""
TABLE = "\nNORMS = {'batch': partial(nn.BatchNorm, use_running_average=True), 'layer': nn.LayerNorm, 'group': nn.RMSNorm}\n"
EXPLICIT = {
    "statements": f"""norm = nn.LayerNorm
        if self.kind == "batch":
            norm = {BATCH}
        elif self.kind == "group":
            norm = partial(nn.GroupNorm, num_groups=2)""",
    "an expression": f'norm = nn.LayerNorm if self.kind == "layer" else {BATCH}',
    "one flag twice": f"""norm = {BATCH}
        if self.kind == "group":
            norm = partial(nn.BatchNorm, use_running_average=not train, epsilon=0.1)""",
}
LAZY = {
    "two values of one flag": f"""norm = {BATCH}
        if self.kind == "group":
            norm = partial(nn.BatchNorm, use_running_average=train)""",
    "a local of one branch": """if self.kind == "batch":
            frozen = not train
            norm = partial(nn.BatchNorm, use_running_average=frozen)
        else:
            norm = nn.LayerNorm""",
    "a table of the call": f"""norms = {{"batch": {BATCH}, "layer": nn.LayerNorm, "group": nn.RMSNorm}}
        norm = norms[self.kind]""",
    "a function of its own": f"""norm = {BATCH}
        if self.kind == "layer":
            norm = lambda name=None: nn.LayerNorm(name=name)""",
}


FROZEN = "\nFROZEN = partial(nn.BatchNorm, use_running_average=True)\n"
MIXED = {
    "a flag by its place": ("partial(nn.BatchNorm, True)", ""),
    "a partial of the file": ("FROZEN", FROZEN),
    "a function": ("frozen()", f"{FROZEN}\n\ndef frozen():\n    return FROZEN\n"),
    "a layer without the flag that it has": ("nn.BatchNorm", ""),
}
BESIDE = {
    "a partial": "norm, partial(nn.BatchNorm, use_running_average=True)",
    "a partial of the file": "norm, FROZEN",
    "a partial of the method": "norm, last",
}


def program(choice: str, around: str = "", given: str = "norm") -> str:
    return PROGRAM.format(choice=choice, around=around, given=given)


@pytest.mark.parametrize("choice", EXPLICIT.values(), ids=EXPLICIT)
def test_a_flag_of_the_call_is_set_where_the_chosen_layer_has_it(choice: str) -> None:
    assert {*printed_alike(program(choice)).values()} == {"explicit"}


@pytest.mark.parametrize("choice", LAZY.values(), ids=LAZY)
def test_a_flag_that_is_not_the_same_at_the_call_keeps_the_class_lazy(choice: str) -> None:
    assert printed_alike(program(choice))["m.Net"] == "lazy"


@pytest.mark.parametrize(("other", "around"), MIXED.values(), ids=MIXED)
def test_no_flag_is_set_of_a_layer_that_has_it_from_elsewhere(other: str, around: str) -> None:
    choice = f"norm = {BATCH}\n        if self.kind == 'layer':\n            norm = {other}"
    source = program(choice, around).replace('"layer", "group"', '"group"')
    assert printed_alike(source)["m.Net"] == "lazy"


def test_no_flag_is_set_whose_names_are_bound_again() -> None:
    choice = f"norm = nn.LayerNorm\n        if self.kind == 'batch':\n            norm = {BATCH}\n        train = False"
    assert printed_alike(program(choice))["m.Net"] == "lazy"


@pytest.mark.parametrize("given", BESIDE.values(), ids=BESIDE)
def test_no_flag_is_set_of_a_block_that_is_given_another_partial(given: str) -> None:
    choice = f"norm = {BATCH}\n        last = FROZEN"
    source = program(choice, FROZEN, given).replace(
        "    norm: Any\n", "    norm: Any\n    last: Any\n"
    )
    source = source.replace('self.norm(name="last")', "self.last()")
    assert printed_alike(source)["m.Net"] == "lazy"


def test_no_flag_is_set_of_a_block_whose_default_gives_it() -> None:
    source = program(f"norm = {BATCH}", FROZEN)
    source = source.replace("    norm: Any\n", "    norm: Any\n    last: Any = FROZEN\n")
    source = source.replace('self.norm(name="last")', "self.last()")
    assert printed_alike(source)["m.Net"] == "lazy"


def test_a_function_returns_one_of_several() -> None:
    choice = "norm = norm_of(self.kind, self.kind == 'group')"
    assert {*printed_alike(program(choice, NORM_OF)).values()} == {"explicit"}


def test_a_dict_is_unpacked() -> None:
    choice = "norm = norm_of(self.kind, True)\n        options = dict(norm=norm)"
    assert {*printed_alike(program(choice, NORM_OF, "**options")).values()} == {"explicit"}


def test_a_table_has_them() -> None:
    found = printed_alike(program("norm = NORMS[self.kind]", TABLE))
    assert {*found.values()} == {"explicit"}


def test_a_table_that_something_changes_may_have_others() -> None:
    changed = f"{TABLE}NORMS['group'] = lambda name=None: nn.LayerNorm(name=name)\n"
    found = printed_alike(program("norm = NORMS[self.kind]", changed))
    assert found == {"m.Block": "explicit", "m.Net": "lazy"}


def test_a_function_may_return_what_nobody_knows() -> None:
    unknown = NORM_OF.replace(
        "return nn.LayerNorm", "return lambda name=None: nn.RMSNorm(name=name)"
    )
    found = printed_alike(program("norm = norm_of(self.kind, True)", unknown))
    assert found == {"m.Block": "explicit", "m.Net": "lazy"}


OPTIONAL = (
    LINEN
    + """\
from typing import Any, Callable, Optional
import jax
import jax.numpy as jnp


class Down(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(2 * self.width)(x)


class Stage(nn.Module):
    width: int
    norm: Any = nn.LayerNorm
    down: Optional[Callable] = None

    @nn.compact
    def __call__(self, x):
        x = x + nn.Dense(self.width)(x)
        if self.norm is not None:
            x = self.norm(name="norm")(x)
        {down}
        return x


class Net(nn.Module):
    norm: Any = nn.LayerNorm
    count: int = 2

    @nn.compact
    def __call__(self, x):
        for i in range(self.count):
            x = Stage(4 * 2**i, self.norm if i else None, Down if i < self.count - 1 else None)(x)
        return nn.Dense(2)(x)


{around}


def main():
    x = jax.random.normal(jax.random.key(1), (3, 4))
    for model in models():
        variables = model.init(jax.random.key(0), x)
        print(jax.tree.map(lambda one: (one.shape, float(one.sum())), variables))
        print(model.apply(variables, x))
"""
)
DOWN = "if self.down is not None:\n            x = self.down(self.width)(x)"
MODELS = "def models():\n    return [Net(), Net(nn.RMSNorm, 3), Net(None)]"
CHOSEN = """\
def models():
    found = []
    for name in ("rms", "layer", ""):
        if name == "rms":
            norm = nn.RMSNorm
        elif name == "layer":
            norm = nn.LayerNorm
        else:
            norm = None
        found.append(Net(norm))
    return found"""


@pytest.mark.parametrize("around", [MODELS, CHOSEN], ids=["given", "chosen before"])
def test_a_field_is_none_for_some(around: str) -> None:
    found = printed_alike(OPTIONAL.format(down=DOWN, around=around))
    assert {*found.values()} == {"explicit"}


def test_a_local_that_is_more_than_given_keeps_the_class_lazy() -> None:
    around = CHOSEN.replace("found.append", "print(norm is nn.RMSNorm)\n        found.append")
    assert printed_alike(OPTIONAL.format(down=DOWN, around=around))["m.Net"] == "lazy"
