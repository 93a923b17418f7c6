"""Run cases on one side and print digests of all numbers: ``python -m benchmarks.packages.side``.

Each side runs in a process of its own, since the package has one name on both. Programs are compiled
alike on both sides (one `jax.jit` around `init`, one around `apply`), so bits may be compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

BEFORE, AFTER = "before", "after"
Digests = dict[str, str]  # path of a leaf -> shape, dtype and hash of its bytes


def main(arguments: list[str] | None = None) -> int:
    """Run the cases; one JSON line each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packages.side")
    parser.add_argument("--source", type=Path, required=True, help="tree to import classes from")
    parser.add_argument("--side", choices=(BEFORE, AFTER), required=True)
    parser.add_argument("cases", type=Path, nargs="+")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(options.source))
    made = _count_linen_modules()
    for case in options.cases:
        started = time.monotonic()
        made.clear()
        try:
            result = _in_some_mode(case, options.side)
        except Exception as error:  # noqa: BLE001 - reported: one case never stops the others
            result = {"error": _told(error)}
        result |= {"linen_modules": sorted(made), "seconds": round(time.monotonic() - started, 1)}
        sys.stdout.write(json.dumps({"case": str(case), **result}) + "\n")
        sys.stdout.flush()
    return 0


def _in_some_mode(path: Path, side: str) -> dict[str, Any]:
    """Under `jax.jit`, or eagerly where the model reads numbers of what it computes."""
    import jax

    try:
        return {"mode": "jit", **_run(path, side, jax.jit)}
    except jax.errors.ConcretizationTypeError:
        return {"mode": "eager", **_run(path, side, lambda function: function)}


def _run(path: Path, side: str, jit: Callable[..., Any]) -> dict[str, Any]:
    import jax

    from nnx_migrate.parity.files.case_file import call_arguments, load_case

    case = load_case(path)
    streams = case.settings.get("rngs", {})
    keys = {name: jax.random.key(seed) for name, seed in {"params": 0, **streams}.items()}
    drawn = {name: key for name, key in keys.items() if name in streams}
    mutable = list(case.settings.get("collections", ()))
    arguments, call = _arrays(*call_arguments(case.inputs(), path))
    module = case.linen()  # outside of jit: packages set up meshes and the like when imported

    def init(keys: Any, arrays: Any) -> Any:
        args, kwargs = call(arrays)
        return module.init(keys, *args, **kwargs)

    def apply(variables: Any, keys: Any, arrays: Any) -> Any:
        args, kwargs = call(arrays)
        return module.apply(variables, *args, rngs=keys, mutable=mutable, **kwargs)

    variables = jit(init)(keys, arguments)
    outputs = jit(apply)(_moved(variables), drawn, arguments)
    found = {"variables": digests(variables), "outputs": digests(outputs)}
    _check_worth(outputs)
    if side == AFTER:
        found |= _built(module, jit, call, keys, arguments, variables)
    return found


def _built(module: Any, jit: Any, call: Any, keys: Any, arguments: Any, variables: Any) -> Any:
    """Variables of ``nn.build``, and what the built module answers, beside those of ``apply``."""
    from flax import nnx

    from nnx_migrate import linen as nn

    if not isinstance(module, nn.Module) or not isinstance(module, nnx.Module):
        raise TypeError(f"{type(module).__qualname__} is no NNX module")
    definitions: list[Any] = []

    def build(keys: Any, arrays: Any) -> Any:
        args, kwargs = call(arrays)
        copy = module.clone(_deep_clone=True)
        built = nn.build(copy, *args, rngs=keys, **kwargs)
        graphdef, state = nnx.split(built)
        definitions.append(graphdef)
        return nn.variables(built), state

    made, state = jit(build)(keys, arguments)
    found: dict[str, Any] = {"built": digests(made)}
    if len(keys) == 1:  # a built module draws from streams of its own

        def module_call(state: Any, arrays: Any) -> Any:
            args, kwargs = call(arrays)
            return nnx.merge(definitions[-1], state, copy=True)(*args, **kwargs)

        def functional(variables: Any, arrays: Any) -> Any:
            args, kwargs = call(arrays)
            stateful = [name for name in variables if name != "params"]
            return module.apply(variables, *args, mutable=stateful, **kwargs)[0]

        found["built_call"] = digests(jit(module_call)(state, arguments))
        found["built_apply"] = digests(jit(functional)(variables, arguments))
    return found


def _arrays(args: Any, kwargs: Any) -> tuple[list[Any], Callable[[Any], Any]]:
    """The arrays of a call, and how to put traced ones back; what is no array stays static."""
    import jax
    import numpy as np

    leaves, tree = jax.tree.flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray | jax.Array)]

    def call(arrays: Any) -> Any:
        full = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            full[place] = array
        return jax.tree.unflatten(tree, full)

    return [leaves[i] for i in places], call


def _moved(variables: Any) -> Any:
    """Parameters away from their initial zeros and ones, the same on both sides."""
    import jax
    import numpy as np

    def moved(path: Any, leaf: Any) -> Any:
        if not str(leaf.dtype).startswith(("float", "bfloat", "complex")):
            return leaf
        seed = hashlib.sha256(_name(path).encode()).digest()
        noise = 0.05 * np.random.default_rng(list(seed)).normal(size=leaf.shape)
        return leaf + noise.astype(leaf.dtype)

    params = jax.tree_util.tree_map_with_path(moved, variables.get("params", {}))
    return {**variables, "params": params} if "params" in variables else variables


def _check_worth(outputs: Any) -> None:
    import jax
    import numpy as np

    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(outputs) if hasattr(leaf, "dtype")]
    if not any(np.unique(leaf).size > 1 for leaf in leaves):
        raise ValueError("every output is constant: the case compares nothing")
    if any(not np.isfinite(leaf).all() for leaf in leaves if leaf.dtype.kind in "fc"):
        raise ValueError("an output is not finite")


def digests(tree: Any) -> Digests:
    """Shape, dtype and hash of the bytes of every leaf, by its path."""
    import jax
    import numpy as np

    found = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        array = np.asarray(leaf)
        content = hashlib.sha256(array.tobytes()).hexdigest()[:20]
        found[_name(path)] = f"{array.shape} {array.dtype} {content}"
    return found


def _name(path: Any) -> str:
    import jax

    return jax.tree_util.keystr(path, simple=True, separator="/")


def _count_linen_modules() -> set[str]:
    """The set that the names of all Linen modules made from now on go to."""
    import flax.linen

    made: set[str] = set()
    original = flax.linen.Module.__post_init__

    def record(self: Any) -> None:
        made.add(f"{type(self).__module__}.{type(self).__qualname__}")
        original(self)

    flax.linen.Module.__post_init__ = record  # type: ignore[method-assign]
    return made


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    message = ""
    with suppress(Exception):
        message = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {message}{place}"


if __name__ == "__main__":
    sys.exit(main())
