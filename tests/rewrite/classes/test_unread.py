"""Submodules of ``setup`` that nobody calls, and keys of dicts that hold submodules."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.rewrite.projects import LINEN, one_line, rewrite, texts
from tests.rewrite.running import compare, in_auto, migrated, printed_alike

X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)


def model(value: str, call: str) -> str:
    """A class that sets ``self.part`` and returns ``call``."""
    lines = (
        "    def setup(self):",
        f"        self.part = {value}",
        "        self.out = nn.Dense(3)",
    )
    return f"{LINEN}class Model(nn.Module):\n" + "\n".join(
        (*lines, "", "    def __call__(self, x):", f"        return {call}", "")
    )


RUN = """
import jax
import jax.numpy as jnp


def main():
    x = jnp.linspace(-1, 1, 12).reshape(2, 6)
    model = Model()
    variables = model.init(jax.random.key(0), x)
    print(jax.tree.map(jnp.sum, variables), model.apply(variables, x))
"""


@pytest.mark.parametrize(
    ("value", "call", "line"),
    [
        ("nn.Embed(8, 3)", "self.out(x)", "self.part = nn.Embed(8, 3)"),
        ("[nn.Embed(8, 3)]", "self.out(x)", "[nn.Embed(8, 3)]"),
        ("[nn.Dense(4), nn.Embed(8, 3)]", "self.out(self.part[0](x))", ", nn.Embed(8, 3)]"),
        ("[nn.Embed(8, 3), nn.Dense(4)]", "self.out(self.part[-1](x))", "[nn.Embed(8, 3), nnx."),
        (
            "{'a': nn.Embed(8, 3), 'b': nn.Dense(8)}",
            "self.out(self.part['b'](x))",
            "{'a': nn.Embed(8, 3), 'b': nnx.",
        ),
    ],
)
def test_what_nobody_reads_is_left_to_a_first_call(value: str, call: str, line: str) -> None:
    source = model(value, call) + RUN
    assert printed_alike(source) == {"m.Model": "explicit"}
    assert line in one_line(in_auto(source))


@pytest.mark.parametrize(
    ("value", "call", "line"),
    [
        ("nn.Dense(6)", "self.out(x)", "self.part = nn.Dense(6)"),
        ("[nn.Dense(4), nn.Dense(8)]", "self.out(self.part[0](x))", ", nn.Dense(8)]"),
        (
            "{'a': nn.Dense(4), 'b': nn.Dense(8)}",
            "self.out(self.part['b'](x))",
            "{'a': nn.Dense(4), 'b': nnx.",
        ),
    ],
)
def test_what_nobody_calls_is_left_to_a_first_call(value: str, call: str, line: str) -> None:
    files = {"m.py": model(value, call) + RUN}
    assert line in one_line(texts(rewrite(files), files)["m.py"])
    printed_alike(files["m.py"])


OTHERWISE = """
import jax
import jax.numpy as jnp


def main():
    x = jnp.linspace(-1, 1, 12).reshape(2, 6)
    model = Model()
    print(jax.tree.map(jnp.sum, model.init(jax.random.key(0), x)))
    variables = model.init(jax.random.key(0), x.astype(int), method=lambda m, x: m.part(x))
    print(variables, model.bind(variables).part(x.astype(int)))
    print(model.apply({}, x, method=lambda m, x: m.part.num_embeddings * x))
"""


def test_what_only_code_around_calls_has_variables_there_alone() -> None:
    printed_alike(model("nn.Embed(8, 3)", "self.out(x)") + OTHERWISE)


@pytest.mark.parametrize(
    ("value", "call"),
    [
        ("nn.Dense(6)", "self.out(self.part(x))"),
        ("nn.Dropout(0.5)", "self.out(x)"),
        ("[nn.Dense(6), nn.Dense(6)]", "self.out(self.part[-1](self.part[0](x)))"),
        ("nn.Dense(6)", "self.out(getattr(self, 'par' + 't')(x))"),
    ],
)
def test_what_may_be_read_or_has_no_variables_is_not(value: str, call: str) -> None:
    assert not re.search(r"\bnn\.", migrated(model(value, call)))


def test_what_a_derived_class_reads_has_variables_in_its_calls() -> None:
    text = model("nn.Embed(8, 3)", "self.out(x)")
    derived = "class Other(Model):\n    def part_of(self, x):\n        return self.part(x)\n"
    run = RUN + (
        "    other = Other()\n    ids = jnp.arange(4)\n"
        "    print(jax.tree.map(jnp.sum, other.init(jax.random.key(0), x)))\n"
        "    variables = other.init(jax.random.key(0), ids, method='part_of')\n"
        "    print(variables, other.apply(variables, ids, method='part_of'))\n"
    )
    source = f"{text}\n\n{derived}{run}"
    assert printed_alike(source) == {"m.Model": "lazy", "m.Other": "lazy"}


@pytest.mark.parametrize("keys", [("(1, 2)", "(1, 3)"), ("2", "1"), ("True", "False")])
def test_submodules_under_keys_that_are_no_strings_are_the_same(keys: tuple[str, str]) -> None:
    one, other = keys
    parts = f"{{{one}: nn.Dense(4), {other}: nn.Dense(5)}}"
    source = model(parts, f"self.out(self.part[{other}](self.part[{one}](x)))")
    report = compare(source, "Model()", {"in_features": 6}, (X,))
    assert report.verdict in ("identical", "equal_by_rules"), report


@pytest.mark.parametrize(("keys", "read"), [(("1.0", "2.0"), "1"), (("True", "False"), "1")])
def test_keys_that_are_spelled_otherwise_tell_no_size(keys: tuple[str, str], read: str) -> None:
    parts = f"{{{keys[0]}: nn.Dense(4), {keys[1]}: nn.Dense(5)}}"
    result = rewrite({"m.py": model(parts, f"self.out(self.part[{read}](x))")})
    (found,) = result.classes
    assert found.outcome.value == "refused" or "out_in_features" in found.new_arguments


@pytest.mark.parametrize("key", ["x.ndim", "KEY", "-1"])
def test_computed_keys_keep_the_class_linen(key: str) -> None:
    parts = f"{{{key.replace('x.ndim', '1 + 1')}: nn.Dense(4), 3: nn.Dense(5)}}"
    source = model(parts, f"self.out(self.part[{key}](self.part[3](x)))")
    (found,) = rewrite({"m.py": "KEY = 2\n" + source}).classes
    assert found.outcome.value == "refused"


PERHAPS = """\
class Inner(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x + self.param("w", nn.initializers.ones, ())


class Model(nn.Module):
    deep: bool = True

    def setup(self):
        self.first = nn.Dense(3)
        self.late = {value}

    def __call__(self, x, train=True, other=None):
        x = self.first(x)
        {use}
        return x
"""


SOME_CALLS = """
import jax
import jax.numpy as jnp


def main():
    x = jnp.linspace(-1, 1, 12).reshape(2, 6)
    model = Model()
    for train in (True, False):
        variables = model.init(jax.random.key(0), x, train)
        print(jax.tree.map(jnp.sum, variables))
        print(model.apply(variables, x, train), model.apply(variables, x, False))
"""


def refusals(value: str, use: str) -> list[str]:
    """Why classes of the program are refused."""
    result = rewrite({"m.py": LINEN + PERHAPS.format(value=value, use=use)})
    return [one.reason for one in result.classes if one.reason]


@pytest.mark.parametrize(
    "use",
    [
        "for one in self.late if train else (): x = one(x)",
        "for one in self.late[:train]: x = one(x)",
        "for one in [one for one in self.late if train]: x = one(x)",
    ],
)
def test_submodules_that_only_some_calls_loop_over_are_left_to_their_first_calls(use: str) -> None:
    source = LINEN + PERHAPS.format(value="[Inner(), Inner()]", use=use) + SOME_CALLS
    assert printed_alike(source) == {"m.Inner": "explicit", "m.Model": "explicit"}
    assert "[lazy(Inner)(), lazy(Inner)()]" in in_auto(source)


@pytest.mark.parametrize(
    ("value", "use"),
    [
        ("nn.Dense(3)", "if self.deep: x = self.late(x)"),
        ("nn.Dense(3)", "x = self.late(x) if train else -self.late(x)"),
        ("nn.Dense(3)", "if self.deep is True: x = self.late(x)"),
        (
            "nn.Dense(3)",
            "if other is not None: x = self.late(other)",
        ),  # built where its size is given
        ("nn.Dropout(0.5, deterministic=True)", "if train: x = self.late(x)"),
        ("Inner()", "for _ in range(2): x = self.late(x)"),
        ("Inner()", "if train: x = 2 * x\n        x = self.late(x)"),
    ],
)
def test_a_submodule_that_every_call_reaches_is_not(value: str, use: str) -> None:
    assert refusals(value, use) == []


def test_a_layer_that_calls_either_run_or_give_parameters_is_built_where_the_first_call_runs_it() -> (
    None
):
    use = "x = self.late(x) if other is None else self.late.apply({'params': {'kernel': other}}, x)"
    text = PERHAPS.format(value="nn.Dense(3, use_bias=False)", use=use)
    files = {"m.py": LINEN + text}
    code = texts(rewrite(files), files)["m.py"]
    built = "nnx.Linear(3, 3, use_bias=False, rngs=rngs)"
    assert f"        if not with_other:\n            self.late = {built}\n" in code
    assert f"nnm.with_params(lambda rngs: {built}, {{'kernel': other}})(x)" in code


def test_a_layer_that_calls_either_run_or_give_parameters_keeps_the_class_linen() -> None:
    use = "x = self.late(x) if x.ndim > 2 else self.late.apply({'params': {'kernel': x}}, x)"
    text = PERHAPS.format(value="nn.Dense(3, use_bias=False)", use=use)
    result = rewrite({"m.py": LINEN + text})
    assert [one.reason for one in result.classes if one.reason] == [
        "a lazy submodule is more than called here"
    ]
