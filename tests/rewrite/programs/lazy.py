"""A Linen program and its lazy form: the same bits, whatever the program does."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

import nnx_migrate.linen as lazy
from nnx_migrate.model import Form
from tests.rewrite.programs.comparing import NAME, Program, Side, X, run
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
    found: list[tuple[Any, Any]] = []
    for text in (program.text, texts(result, files)[f"{NAME}.py"]):
        with module_of(NAME, text) as module:
            model = module.Model()
            side = Side(lambda keys, train, model=model: model.init(keys, X, train), model.apply)
            found.append(run(side, program))
            if isinstance(model, lazy.Module) and found[0][0] is not None:
                compare_built(model, program)
    (wanted, error), (given, raised) = found
    if wanted is None:
        assert type(raised) is type(error), (raised, error)
        return f"Linen: {type(error).__name__}"
    assert given is not None, raised
    same_bits(wanted, given)
    return "same"


def compare_built(model: Any, program: Program) -> None:
    """A built module has the variables of `init`, and calls as `apply` does."""
    keys = {name: jax.random.key(seed) for seed, name in enumerate(("params", *program.streams))}
    variables = model.init(keys, X, program.init_train)
    built = lazy.build(model.clone(), X, program.init_train, rngs=keys)
    held = lazy.variables(built)
    same_bits(variables.get("params", {}), held.get("params", {}))
    if not program.streams:
        changing = [name for name in held if name != "params"]
        expected, changed = model.apply(held, X, program.init_train, mutable=changing)
        same_bits(expected, built(X, program.init_train))
        after = lazy.variables(built)
        same_bits(
            {name: changed[name] for name in changing}, {name: after[name] for name in changing}
        )


def same_bits(wanted: Any, given: Any) -> None:
    """Assert that two trees have the same places and the same bits."""
    first = jax.tree_util.tree_leaves_with_path(wanted)
    second = jax.tree_util.tree_leaves_with_path(given)
    assert [path for path, _ in first] == [path for path, _ in second]
    for (path, one), (_, other) in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=jax.tree_util.keystr(path))
