"""Rounds of loops, and methods, that end before their last statement."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.projects import explicit_source, rewrite_in_form
from tests.rewrite.running import in_auto, printed_alike

CLASS = """
class {name}(nn.Module):
    widths: tuple = (3, 4, 5)
    at: int = 4

    @nn.compact
    def __call__(self, x):
{body}

"""
MAIN = """
def main():
    x = jnp.linspace(-1, 1, 12).reshape(3, 4)
    for model in (Model, *OTHERS):
        for at in (0, 3, 4, 5):
            variables = model(at=at).init(jax.random.key(0), x)
            places = jax.tree_util.tree_leaves_with_path(variables)
            print(sorted((jax.tree_util.keystr(path), one.shape) for path, one in places))
            print(jnp.abs(model(at=at).apply(variables, x)).sum())
"""


def _program(*bodies: str) -> str:
    names = ["Model", *(f"Model{number}" for number in range(1, len(bodies)))]
    classes = [
        CLASS.format(name=name, body=textwrap.indent(body, " " * 8))
        for name, body in zip(names, bodies, strict=True)
    ]
    others = f"OTHERS = ({''.join(f'{one}, ' for one in names[1:])})\n"
    return "".join(
        ["import flax.linen as nn\nimport jax\nimport jax.numpy as jnp\n", *classes, others, MAIN]
    )


def _explicit_alike(*bodies: str) -> None:
    forms = printed_alike(_program(*bodies))
    assert set(forms.values()) == {"explicit"}, forms


def _lazy(body: str) -> str:
    """Why the model is lazy, after it was run."""
    source = _program(body)
    assert printed_alike(source) == {"m.Model": "lazy"}
    (found,) = rewrite_in_form({"m.py": source}, "auto").classes
    return found.reason or ""


def test_what_is_built_before_continue_is_another_one_in_every_such_round() -> None:
    _explicit_alike(
        "for i in range(4):\n"
        "    if i % 2:\n"
        "        x = x + nn.Dense(4)(x)\n"
        "        continue\n"
        "    x = nn.LayerNorm()(x)\n"
        "return x",
        "for kind in ('rms', 'layer', 'rms'):\n"
        "    x = nn.Dense(4)(x)\n"
        "    if kind == 'rms':\n"
        "        x = nn.RMSNorm()(x)\n"
        "        continue\n"
        "    x = nn.LayerNorm()(x)\n"
        "return x",
    )


def test_what_is_built_before_break_counts_behind_the_loop() -> None:
    _explicit_alike(
        "for w in self.widths:\n"
        "    if w == self.at:\n"
        "        x = nn.Dense(4)(x)\n"
        "        break\n"
        "    x = nn.LayerNorm()(x)\n"
        "return nn.Dense(4)(x)",
        "for w in self.widths:\n"
        "    for k in self.widths:\n"
        "        if k == w:\n"
        "            x = nn.Dense(4)(x)\n"
        "            break\n"
        "    x = nn.LayerNorm()(x)\n"
        "return nn.Dense(4)(x)",
    )


def test_what_is_built_before_a_return_or_in_every_round_keeps_its_names() -> None:
    source = _program(
        "for i in range(2):\n"
        "    x = nn.Dense(4)(x)\n"
        "if self.at:\n"
        "    return nn.LayerNorm()(x)\n"
        "return nn.LayerNorm()(nn.Dense(2)(x))"
    )
    text = in_auto(source)
    assert "self.Dense_2 = " in text
    assert text.count("self.LayerNorm_0 = ") == 2
    assert "LinenNames" not in text


def test_a_size_is_carried_to_every_end_of_a_round() -> None:
    _explicit_alike(
        "for w in self.widths:\n"
        "    x = nn.Dense(w)(x)\n"
        "    if w == self.at:\n"
        "        continue\n"
        "    x = nn.LayerNorm()(x)\n"
        "return nn.Dense(2)(x)",
        "for w in self.widths:\n"
        "    x = nn.Dense(w)(x)\n"
        "    if w == self.at:\n"
        "        break\n"
        "    x = nn.LayerNorm()(x)\n"
        "return nn.Dense(2)(x)",
        "for i, w in enumerate(self.widths):\n"
        "    if i == self.at - 3:\n"
        "        x = nn.Dense(w, name=f'skip_{i}')(x)\n"
        "        continue\n"
        "    x = nn.relu(nn.Dense(w)(x))\n"
        "return x",
        "for w in self.widths:\n"
        "    for k in (1, 2):\n"
        "        x = nn.Dense(k * w)(x)\n"
        "        if k * w == self.at:\n"
        "            break\n"
        "    x = nn.Dense(w)(x)\n"
        "return nn.Dense(2)(x)",
    )


def test_a_size_behind_a_loop_with_break_is_not_that_of_its_last_item() -> None:
    _explicit_alike(
        "for w in (3, 4, 5):\n"
        "    x = nn.Dense(w)(x)\n"
        "    if w == self.at:\n"
        "        break\n"
        "return nn.Dense(2)(x)",
        "for w, act in ((3, nn.relu), (4, nn.tanh), (5, nn.gelu)):\n"
        "    x = act(nn.Dense(w)(x))\n"
        "    if w == self.at:\n"
        "        break\n"
        "return nn.Dense(2)(x)",
    )


def test_layers_whose_size_not_every_end_of_a_round_has_are_lazy() -> None:
    source = _program(
        "for w in self.widths:\n"
        "    if w == self.at:\n"
        "        continue\n"
        "    x = nn.Dense(w)(x)\n"
        "return nn.Dense(2)(x)"
    )
    assert printed_alike(source) == {"m.Model": "explicit"}
    text = in_auto(source)
    assert 'setattr(self, names("Dense"), nn.Dense(w))' in text
    assert 'setattr(self, names("Dense"), nn.Dense(2))' in text


def test_break_and_return_in_a_loop_that_builds_nothing_count() -> None:
    _explicit_alike(
        "n = 0\n"
        "for w in self.widths:\n"
        "    n += w\n"
        "    if w == self.at:\n"
        "        break\n"
        "return nn.Dense(n)(x)",
        "x = nn.Dense(3)(x)\n"
        "for w in self.widths:\n"
        "    if w == self.at:\n"
        "        return x\n"
        "return nn.Dense(2)(x)",
        "x = nn.Dense(3)(x)\n"
        "for w in self.widths:\n"
        "    for k in (1, 2):\n"
        "        if k == 2 and w == 4:\n"
        "            break\n"
        "        if k * w == self.at:\n"
        "            return x\n"
        "return nn.Dense(2)(x)",
    )


def test_a_loop_that_only_the_call_needs_is_not_in_init() -> None:
    source = _program(
        "x = nn.Dense(3)(x)\n"
        "for w in self.widths:\n"
        "    if w == self.at:\n"
        "        break\n"
        "    x = x + w\n"
        "return nn.Dense(2)(x)"
    )
    init, _, _ = in_auto(source).partition("def __call__")
    assert "for w" not in init


def test_a_local_that_is_bound_before_continue_is_read_in_the_next_round() -> None:
    _explicit_alike(
        "n = 3\n"
        "for w in self.widths:\n"
        "    x = nn.Dense(n)(x)\n"
        "    if w == self.at:\n"
        "        n = 7\n"
        "        continue\n"
        "    n = w\n"
        "return nn.Dense(n)(x)",
        "n = 3\n"
        "for w in self.widths:\n"
        "    if w == self.at:\n"
        "        n = 7\n"
        "        break\n"
        "    n = w\n"
        "    x = nn.Dense(n)(x)\n"
        "return nn.Dense(n)(x)",
    )


@pytest.mark.parametrize(
    "statement",
    [
        "with jax.named_scope('a'):\n    if self.at == 4:\n        return x",
        "match self.at:\n    case 4:\n        return x",
        (
            "for w in self.widths:\n    if w == 5:\n        break\n"
            "    if self.at == 4:\n        return x\nelse:\n    x = x + 1"
        ),
    ],
)
def test_a_statement_that_is_not_followed_and_may_return_before_something_is_built(
    statement: str,
) -> None:
    body = f"x = nn.Dense(3)(x)\n{statement}\nreturn nn.Dense(2)(x)"
    assert "may end in this statement" in _lazy(body)


@pytest.mark.parametrize("jump", ["continue", "break"])
def test_a_statement_that_is_not_followed_and_may_end_the_round(jump: str) -> None:
    body = (
        "for w in self.widths:\n"
        "    with jax.named_scope('a'):\n"
        "        if w == self.at:\n"
        f"            {jump}\n"
        "    x = nn.Dense(w)(x)\n"
        "return x"
    )
    assert "may end in this statement" in _lazy(body)


@pytest.mark.parametrize(
    "body",
    [
        "x = nn.Dense(2)(x)\nwith jax.named_scope('a'):\n    return x + 1",
    ],
)
def test_a_statement_that_ends_nothing_else_is_no_reason(body: str) -> None:
    (found,) = explicit_source(_program(body)).classes
    assert "may end in this statement" not in (found.reason or "")


def test_break_under_a_condition_on_the_call_in_a_loop_that_decides_a_size() -> None:
    body = (
        "n = 0\n"
        "for w in self.widths:\n"
        "    n += w\n"
        "    if x.sum() > 99:\n"
        "        break\n"
        "return nn.Dense(n)(x)"
    )
    assert "returns early under a condition on 'x'" in _lazy(body)


PATHS = """\
import flax.linen as nn
import jax
import jax.numpy as jnp


class Path(nn.Module):
    rate: float = 0.5

    @nn.compact
    def __call__(self, x, deterministic=True):
        {}


class Model(nn.Module):
    @nn.compact
    def __call__(self, x, deterministic=True):
        for rate in (0.0, 0.4):
            x = x + Path(rate)(nn.Dense(4)(x), deterministic)
        return nn.Dense(2)(x)


def main():
    x = jnp.linspace(-1, 1, 12).reshape(3, 4)
    keys = {{"params": jax.random.key(0), "dropout": jax.random.key(1)}}
    for flag in (True, False):
        variables = Model().init(keys, x, flag)
        print(variables)
        print(Model().apply(variables, x, flag, rngs={{"dropout": jax.random.key(2)}}))
        print(jax.jit(Model().apply, static_argnums=2)(variables, x, flag, rngs={{"dropout": jax.random.key(3)}}))
"""
EARLY = {
    "a flag or a field": "if self.rate == 0.0 or deterministic:\n            return x\n"
    "        return nn.Dropout(self.rate, broadcast_dims=(1,))(x, deterministic=False)",
    "a flag": "if deterministic:\n            return x\n"
    "        return nn.Dropout(self.rate)(x, deterministic=False)",
    "two of them": "if deterministic:\n            return x\n"
    "        x = nn.Dropout(self.rate)(x, deterministic=False)\n"
    "        return nn.Dropout(0.1)(x, deterministic=False)",
    "a key": "if deterministic or not self.rate:\n            return x\n"
    "        keep = jax.random.bernoulli(self.make_rng('dropout'), 1 - self.rate, (x.shape[0], 1))\n"
    "        return jnp.where(keep, x / (1 - self.rate), 0)",
}


@pytest.mark.parametrize("body", EARLY.values(), ids=EARLY)
def test_what_has_no_variables_is_built_behind_an_early_return(body: str) -> None:
    forms = printed_alike(PATHS.format(body))
    assert forms == {"m.Path": "explicit", "m.Model": "explicit"}


BEHIND = {
    "a layer": "return nn.Dense(4)(x)",
    "a layer behind a dropout": "x = nn.Dropout(self.rate)(x, deterministic=False)\n        return nn.Dense(4)(x)",
    "two layers": "x = nn.LayerNorm()(nn.Dense(7)(x))\n        return nn.Dense(4)(x)",
    "a class": "return Part()(x)",
}


@pytest.mark.parametrize("rest", BEHIND.values(), ids=BEHIND)
def test_other_layers_behind_it_are_left_to_their_first_calls(rest: str) -> None:
    part = "class Part(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n        return nn.Dense(4)(x)\n\n\n"
    body = f"if deterministic or not self.rate:\n            return x\n        {rest}"
    text = PATHS.format(body).replace("class Path", f"{part}class Path")
    forms = printed_alike(text)
    assert forms["m.Path"] == forms["m.Model"] == "explicit"


def test_what_is_computed_behind_it_may_raise_where_the_call_returns() -> None:
    body = (
        "if deterministic or not self.rate:\n            return x\n        rate = 1 / self.rate - 1.5\n"
        "        return nn.Dropout(rate)(x, deterministic=False)"
    )
    assert printed_alike(PATHS.format(body))["m.Path"] == "lazy"
