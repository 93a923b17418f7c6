"""Objects that are changed in place, also under another name, in a function, or inside another one."""

from __future__ import annotations

import pytest

from tests.sizes.inference import compact, in_features, problems, sizes_of

ASKED = "Dense_0_in_features"
CONCAT = "return nn.Dense(2)(jnp.concatenate(xs, -1))"


@pytest.mark.parametrize(
    ("change", "size"),
    [
        ("xs.append(x)", "x_features + x_features"),
        ("xs[0] = jnp.ones((1, 3))", "3"),
        ("xs += [x]", "x_features + x_features"),
        ("ys = list(xs); ys.append(x)", "x_features"),
        ("ys = xs[:]; ys[0] = jnp.ones((1, 3))", "x_features"),
        ("ys = xs; xs.append(x)", "x_features + x_features"),
    ],
)
def test_what_is_changed_under_its_own_name_is_known(change: str, size: str) -> None:
    source = compact(f"xs = [x]; {change}\n{CONCAT}")
    found = in_features(sizes_of(source))
    assert found == [size.replace("x_features", "in_features")]


@pytest.mark.parametrize(
    "change",
    [
        "ys = xs; ys.append(x)",
        "ys = xs; ys += [x]",
        "ys = xs; ys[0] = jnp.ones((1, 3))",
        "del xs[0]",
        "grow(xs, x)",
        "add = lambda y: xs.append(y)\nadd(x)",
        "def add(y):\n    xs.append(y)\nadd(x)",
        "def add(y):\n    nonlocal xs\n    xs = grow(xs, y)\nadd(x)",
        "d = {'a': xs}\nd['a'].append(x)",
        "xs.__setitem__(0, jnp.ones((1, 3)))",
        "xs.__iadd__([x])",
        "d = {'a': xs}\nd['a'].__delitem__(0)",
    ],
)
def test_what_is_changed_elsewhere_is_asked_for(change: str) -> None:
    before = "def grow(ys, y):\n    ys.append(y)"
    source = compact(f"xs = [x]\n{change}\n{CONCAT}", before=before)
    assert in_features(sizes_of(source)) == [ASKED]


@pytest.mark.parametrize(
    ("change", "size"),
    [
        ("d['a'] = jnp.ones((1, 3))", "3"),
        ("d.update(a=jnp.ones((1, 4)))", "4"),
        ("d.update({'a': jnp.ones((1, 5))})", "5"),
        ("e = dict(d); e['a'] = jnp.ones((1, 3))", "in_features"),
        ("e = d.copy(); e['a'] = jnp.ones((1, 3))", "in_features"),
        ("e = d; e['a'] = jnp.ones((1, 3))", ASKED),
        ("d.update(x)", ASKED),
        ("d.clear()", ASKED),
        ("d.__setitem__('a', jnp.ones((1, 3)))", ASKED),
        ("d.__ior__({'a': jnp.ones((1, 3))})", ASKED),
        ("d |= {'a': jnp.ones((1, 3))}", ASKED),
        ("e = d; e |= {'a': jnp.ones((1, 3))}", ASKED),
        ("d.pop('a'); d['a'] = jnp.ones((1, 6))", "6"),
    ],
)
def test_dicts_are_followed_as_they_change(change: str, size: str) -> None:
    source = compact(f"d = {{'a': x}}\n{change}\nreturn nn.Dense(2)(d['a'])")
    assert in_features(sizes_of(source)) == [size]


CONFIG = """
import dataclasses

@dataclasses.dataclass
class Config:
    d: int = 4
"""


def test_a_configuration_is_followed_as_it_changes() -> None:
    body = "c = Config(d=8)\nc.d = 9\nx = nn.Dense(c.d)(x)\nreturn nn.Dense(2)(x)"
    assert in_features(sizes_of(compact(body, before=CONFIG))) == ["in_features", "9"]


def test_a_configuration_that_comes_in_and_is_changed_is_not_known() -> None:
    body = "c = self.cfg\nc.d = 9\nx = nn.Dense(self.cfg.d)(x)\nreturn nn.Dense(2)(x)"
    result = sizes_of(compact(body, fields="cfg: Any"))
    assert in_features(result)[1] == "Dense_1_in_features"


def test_a_local_function_reads_names_as_they_are_when_it_runs() -> None:
    body = """
    k = 5
    def wide(y):
        return jnp.concatenate([y, y], -1) if k > 3 else y
    x = wide(nn.Dense(4)(x))
    k = 1
    return nn.Dense(2)(wide(x))
    """
    assert in_features(sizes_of(compact(body))) == ["in_features", "8"]


@pytest.mark.parametrize(
    "reads",
    [
        "self.ls[0](x)",
        "self.ls[1](self.ls[0](x))",
        "self.ls[0](x) + sum(one(x) for one in self.ls)",
    ],
)
def test_a_list_of_which_one_item_is_read_is_no_problem(reads: str) -> None:
    source = f"""
    class Model(nn.Module):
        def setup(self):
            self.ls = [nn.Dense(3) for _ in range(2)]

        def __call__(self, x):
            return {reads}
    """
    assert problems(sizes_of(source)) == []


@pytest.mark.parametrize(
    ("annotation", "size"),
    [("nn.Module", ASKED), ("nn.Module | None", ASKED), ("Callable", "in_features")],
)
def test_a_field_that_holds_any_module_may_change_the_size(annotation: str, size: str) -> None:
    source = compact("return nn.Dense(2)(self.inner(x))", fields=f"inner: {annotation}")
    assert in_features(sizes_of(source)) == [size]
