"""Sources rewritten, run, and compared with what they were."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from benchmarks.generated.running import transcript
from nnx_migrate import nn as nnm
from nnx_migrate.model import Form
from nnx_migrate.parity import ParityCase, ParityReport, check
from tests.rewrite.projects import outcomes, rewrite, rewrite_in_form, texts


@contextmanager
def module_of(name: str, text: str) -> Iterator[types.ModuleType]:
    """``text`` as an imported module."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    try:
        exec(compile(text, f"{name}.py", "exec"), module.__dict__)  # noqa: S102
        yield module
    finally:
        del sys.modules[name]


def migrated(source: str) -> str:
    """The rewritten text; every class is rewritten."""
    files = {"m.py": source}
    result = rewrite(files)
    reasons = [f"{one.name}: {one.reason}" for one in result.classes if one.reason]
    assert set(outcomes(result).values()) == {"rewritten"}, reasons
    return texts(result, files)["m.py"]


def refused(source: str, name: str = "Model") -> str:
    """Why the class ``name`` of the source is refused."""
    found = {one.name: one for one in rewrite({"m.py": source}).classes}[f"m.{name}"]
    assert found.outcome.value == "refused", found
    return found.reason or ""


def lazy(source: str, name: str) -> str:
    """Why the class ``name`` of the source is lazy in the end."""
    found = {one.name: one for one in rewrite_in_form({"m.py": source}, "auto").classes}[
        f"m.{name}"
    ]
    assert found.form is Form.LAZY, found
    return found.reason or ""


def compare(
    source: str, model: str, sizes: dict[str, Any], inputs: tuple[Any, ...], **options: Any
) -> ParityReport:
    """Parity of ``model`` (the text of a call) before and after; ``sizes`` are new arguments."""
    with module_of("linen_side", source) as old, module_of("nnx_side", migrated(source)) as new:
        build = f"{model[:-1]}, **sizes, rngs=rngs)".replace("(, ", "(")
        return check(
            ParityCase(
                linen=eval(model, old.__dict__),
                nnx=lambda rngs: eval(build, new.__dict__, {"sizes": sizes, "rngs": rngs}),
                inputs=inputs,
                **options,
            )
        )


def same_bits(wanted: Any, given: Any) -> None:
    """Assert that two trees have the same places and the same bits."""
    first = jax.tree_util.tree_leaves_with_path(wanted)
    second = jax.tree_util.tree_leaves_with_path(given)
    assert [path for path, _ in first] == [path for path, _ in second]
    for (path, one), (_, other) in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=jax.tree_util.keystr(path))


def in_auto(source: str) -> str:
    """The text after ``--form auto``."""
    files = {"m.py": source}
    return texts(rewrite_in_form(files, "auto"), files)["m.py"]


def same_in_auto(source: str, model: str, *inputs: Any) -> Any:
    """The variables of ``model`` (the text of a call), after the bits of both sides were compared.

    The text after ``--form auto`` runs with Linen's calls: ``init``, ``apply`` on other values.
    """
    with module_of("linen_side", source) as old, module_of("nnx_side", in_auto(source)) as new:
        runs = [_two_calls(eval(model, one.__dict__), inputs) for one in (old, new)]
    same_bits(*runs)
    return runs[1][0]


def printed_alike(source: str) -> dict[str, str]:
    """The forms of the classes in auto, after what ``main`` prints was compared with both forms'.

    What is raised fails.
    """
    return files_printed_alike({"m.py": source})


def files_printed_alike(files: dict[str, str]) -> dict[str, str]:
    """:func:`printed_alike` of several files, of which the last has ``main``."""
    wanted = transcript(files)
    assert isinstance(wanted, list), wanted
    assert wanted
    for form in ("lazy", "auto"):
        result = rewrite_in_form(files, form)
        assert not [one for one in result.findings if one.rule == "internal"], form
        assert transcript(texts(result, files)) == wanted, form
    return {one.name: one.form.value for one in result.classes if one.form is not None}


NET_MAIN = """

def main():
    inputs = {inputs}
    variables = Net().init(jax.random.key(0), *inputs)
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
        print(jax.tree_util.keystr(path), leaf.shape, leaf.sum())
    print(Net().apply(variables, *inputs))
"""


def net_alike(source: str, *inputs: str) -> dict[str, str]:
    """:func:`printed_alike` of a class ``Net``: what it makes and gives for inputs that stand as text."""
    return printed_alike(source + NET_MAIN.format(inputs=f"({', '.join(inputs)},)"))


def _two_calls(model: Any, inputs: tuple[Any, ...]) -> tuple[Any, Any]:
    made = model.init(jax.random.key(0), *inputs)
    return made, model.apply(jax.tree.map(lambda one: one + 1, made), *inputs)


X = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)


def same_start(source: str, model: str, sizes: dict[str, Any], inputs: tuple[Any, ...]) -> Any:
    """Check that one seed gives both sides the same variables, gradients included; the Linen ones."""
    with module_of("linen_side", source) as old, module_of("nnx_side", migrated(source)) as new:
        linen, key = eval(model, old.__dict__), jax.random.key(3)
        theirs = jax.jit(linen.init)(key, *inputs)
        name, _, rest = model.partition("(")
        given = eval(f"dict(args=({rest[:-1]}{',' if rest != ')' else ''}))", {})["args"]
        ours = nnm.build(getattr(new, name), *given, **sizes, rngs=key)
        found = jax.jit(
            lambda key: nnm.variables_of(nnm.build(getattr(new, name), *given, **sizes, rngs=key))
        )(key)
        jax.tree.map(np.testing.assert_array_equal, found, theirs)

        def slopes(apply: Any) -> Any:
            return jax.jit(jax.grad(lambda v: (apply(v, *inputs) ** 2).sum()))(theirs)

        grads = slopes(lambda v, *x: nnm.apply(ours, v, *x)), slopes(linen.apply)
        jax.tree.map(np.testing.assert_array_equal, *grads)
        assert all((one != 0).any() for one in jax.tree.leaves(grads[1]["params"]))
        return theirs


def checked(source: str, model: str, sizes: dict[str, Any], **options: Any) -> Any:
    """Parity, and the same start; gives Linen's variables."""
    report = compare(source, model, sizes, (X,), **options)
    assert report.verdict in ("identical", "equal_by_rules"), report
    return same_start(source, model, sizes, (X,))
