"""Initial values of one side, and those that repeat although they are random."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from nnx_migrate.parity.case import ParityCase
from nnx_migrate.parity.evaluation.constant_key import constant_key
from nnx_migrate.parity.evaluation.measure import KEYS, Variables
from nnx_migrate.parity.evaluation.running import as_run, trace_with_retry
from nnx_migrate.parity.values import Arrays, fetch, is_inexact, same_bits, to_host


def initialise(
    case: ParityCase, build: Callable[[], Variables], constant: bool
) -> tuple[Arrays, dict[str, Any]]:
    """Run an initialiser as the case runs; return its values on the host and as they are."""

    def run(key: Any) -> Variables:
        if not constant:
            return build()
        with constant_key(key, case.rngs):
            return build()

    values = trace_with_retry(lambda: as_run(case, run)(jax.random.key(KEYS[0])))
    return fetch(values), values


def repetitions(values: Mapping[str, Any], others: Mapping[str, Any]) -> tuple[str, ...]:
    """Name variables whose initial values repeat although they are random.

    Two variables with the same bits, or a stack whose slices along its axis all agree: the sign
    of sites that share a key. Random is what differs from ``others``, the values under other
    keys. A lift may stack along any axis.
    """
    found: list[str] = []
    paths_by_value: dict[tuple[Any, ...], str] = {}
    for path, value in sorted(values.items()):
        array = to_host(value)
        if not is_inexact(array.dtype) or array.size < 2 or bool(np.all(array == array.flat[0])):
            continue
        if path in others and same_bits(array, others[path]):
            continue
        fingerprint = (array.shape, str(array.dtype), array.tobytes())
        if fingerprint in paths_by_value:
            found.append(f"{path} = {paths_by_value[fingerprint]}")
        paths_by_value.setdefault(fingerprint, path)
        found += [f"{path}: every slice along axis {axis} is the same" for axis in _alike(array)]
    return tuple(found)


def _alike(array: np.ndarray[Any, Any]) -> list[int]:
    """Axes along which every slice of an array is the same."""
    if array.ndim < 2:
        return []
    axes = [axis for axis, size in enumerate(array.shape) if size > 1]
    return [axis for axis in axes if bool(np.all(array == array.take([0], axis)))]
