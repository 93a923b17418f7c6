"""A Linen program and its lazy form: the same bits, whatever the program does."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

import nnx_migrate.linen as lazy
from nnx_migrate.model import Form
from tests.rewrite.programs.comparing import NAME, Program, Side, X, lowered, run
from tests.rewrite.projects import rewrite_in_form, texts
from tests.rewrite.running import module_of


def lazy_outcome(program: Program) -> str:
    """ "same" after a comparison without a difference; else what Linen itself raises.

    Raises:
      AssertionError: the lazy program gives something else.
    """
    files = {f"{NAME}.py": program.text}
    result = rewrite_in_form(files, "lazy")
    assert {one.form for one in result.classes} == {Form.LAZY}
    with (
        module_of(NAME, program.text) as before,
        module_of(f"lazy_{NAME}", texts(result, files)[f"{NAME}.py"]) as after,
    ):
        sides = [_side(before.Model()), _side(after.Model())]
        wanted, given = (lowered(side, program) for side in sides)
        if isinstance(wanted, Exception):
            assert type(given) is type(wanted), (given, wanted)
            return f"Linen: {type(wanted).__name__}"
        assert not isinstance(given, Exception), given
        if given != wanted:  # another text may still compute the same
            same_bits(*(run(side, program)[0] for side in sides))
        compare_built(after.Model(), program)
    return "same" if given == wanted else "same bits"


def _side(model: Any) -> Side:
    return Side(lambda keys, train: model.init(keys, X, train), model.apply)


def compare_built(model: Any, program: Program) -> None:
    """A built module has the variables of `init`, and calls as `apply` does."""
    keys = {name: jax.random.key(seed) for seed, name in enumerate(("params", *program.streams))}
    train = program.init_train

    def made() -> Any:
        return lazy.variables(lazy.build(model.clone(), X, train, rngs=keys))

    shapes = jax.eval_shape(made)
    expected = jax.eval_shape(lambda: model.init(keys, X, train))
    assert shapes.get("params", {}) == expected.get("params", {})
    if program.streams:
        return
    changing = [name for name in shapes if name != "params"]

    def applied(held: Any) -> Any:
        out, changed = model.apply(held, X, train, mutable=changing)
        return out, {name: changed[name] for name in changing}

    def called(held: Any) -> Any:
        built = lazy.build(model.clone(), X, train, rngs=keys)
        lazy.update(built, held)
        out, after = built(X, train), lazy.variables(built)
        return out, {name: after[name] for name in changing}

    held = jax.jit(made)()
    same_bits(jax.jit(called)(held), jax.jit(applied)(held))


def same_bits(wanted: Any, given: Any) -> None:
    """Assert that two trees have the same places and the same bits."""
    first = jax.tree_util.tree_leaves_with_path(wanted)
    second = jax.tree_util.tree_leaves_with_path(given)
    assert [path for path, _ in first] == [path for path, _ in second]
    for (path, one), (_, other) in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=jax.tree_util.keystr(path))
