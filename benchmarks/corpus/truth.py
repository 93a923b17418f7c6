"""Run the Linen side of cases alone: what the corpus promises before anything is rewritten.

``python -m benchmarks.corpus.truth --source DIR CASE.py...`` initialises and applies each case's
Linen module and prints one JSON line per case: whether it runs, which module classes of the tree
it constructs, how many parameters it has. Run it with the interpreter of the corpus environment.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def main(arguments: list[str] | None = None) -> int:
    """Run the cases named on the command line; the exit code says whether all of them ran."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus.truth")
    parser.add_argument("--source", type=Path, required=True, help="tree to import classes from")
    parser.add_argument("cases", type=Path, nargs="+")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(options.source))
    results = [truth(case, options.source) for case in options.cases]
    return 0 if all(result["ok"] for result in results) else 1


def truth(case: Path, source: Path) -> dict[str, Any]:
    """Run one case, print its result as a JSON line, and return it."""
    started = time.monotonic()
    try:
        result = {"ok": True, **_run(case, source)}
    except Exception as error:  # noqa: BLE001 - reported: one case never stops the others
        place = _place(error)
        result = {"ok": False, "error": f"{type(error).__name__}: {error} ({place})"[:600]}
    result = {"case": case.stem, **result, "seconds": round(time.monotonic() - started, 1)}
    print(json.dumps(result), flush=True)
    return result


def _run(path: Path, source: Path) -> dict[str, Any]:
    import jax
    import numpy as np

    from nnx_migrate.parity.files.case_file import call_arguments, load_case

    case = load_case(path)
    with _constructed(source) as classes:
        module = case.linen()
        arguments, keywords = call_arguments(case.inputs(), path)
        rngs = {name: jax.random.key(seed) for name, seed in case.settings.get("rngs", {}).items()}
        method = case.settings.get("method")
        variables = module.init(
            {"params": jax.random.key(0), **rngs}, *arguments, method=method, **keywords
        )
        variables = {**variables, "params": _perturbed(variables.get("params", {}))}
        mutable = list(case.settings.get("collections", ()))
        outputs = module.apply(
            variables, *arguments, rngs=rngs, mutable=mutable, method=method, **keywords
        )
    leaves = jax.tree.leaves(variables)
    results = [leaf for leaf in jax.tree.leaves(outputs) if hasattr(leaf, "dtype")]
    varying = [leaf for leaf in results if np.unique(np.asarray(leaf)).size > 1]
    if not varying:
        raise ValueError("every output is constant: the case compares nothing")
    if not all(np.isfinite(np.asarray(leaf)).all() for leaf in results if _inexact(leaf)):
        raise ValueError("an output is not finite")
    return {
        "class": next(iter(_place_of(type(module), source)), type(module).__qualname__),
        "classes": sorted(classes),
        "collections": sorted(variables),
        "leaves": len(leaves),
        "parameters": int(sum(leaf.size for leaf in leaves)),
    }


def _perturbed(params: Any) -> Any:
    """Return parameters away from their initial zeros and ones, as parity compares them."""
    import jax
    import numpy as np

    generator = np.random.default_rng(0)

    def moved(leaf: Any) -> Any:
        noise = 0.05 * generator.normal(size=leaf.shape)
        return leaf + noise.astype(leaf.dtype) if _inexact(leaf) else leaf

    return jax.tree.map(moved, params)


def _inexact(leaf: Any) -> bool:
    return str(leaf.dtype).startswith(("float", "bfloat", "complex"))


@contextmanager
def _constructed(source: Path) -> Iterator[set[str]]:
    """Collect ``path:Qualified.Name`` of the module classes of ``source`` that are constructed."""
    from flax import linen as nn

    found: set[str] = set()
    original = nn.Module.__post_init__

    def record(self: Any) -> None:
        for base in type(self).__mro__:
            if issubclass(base, nn.Module):
                found.update(_place_of(base, source))
        original(self)

    nn.Module.__post_init__ = record  # type: ignore[method-assign]
    try:
        yield found
    finally:
        nn.Module.__post_init__ = original  # type: ignore[method-assign]


def _place_of(cls: type, source: Path) -> set[str]:
    file = _file_of(cls).resolve()
    if not file.is_relative_to(source.resolve()):
        return set()
    return {f"{file.relative_to(source.resolve()).as_posix()}:{cls.__qualname__}"}


def _file_of(cls: type) -> Path:
    """Return the file that defines a class; some packages give their classes another module."""
    for value in vars(cls).values():
        function = inspect.unwrap(value) if callable(value) else None
        code = None if function is None else getattr(function, "__code__", None)
        if function and code and function.__qualname__ == f"{cls.__qualname__}.{code.co_name}":
            return Path(code.co_filename)
    module = sys.modules.get(cls.__module__)
    return Path(getattr(module, "__file__", None) or "/")


def _place(error: BaseException) -> str:
    trace = inspect.getinnerframes(error.__traceback__) if error.__traceback__ else []
    return f"{Path(trace[-1].filename).name}:{trace[-1].lineno}" if trace else "?"


if __name__ == "__main__":
    sys.exit(main())
