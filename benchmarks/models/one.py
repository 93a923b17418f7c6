"""One measurement, in this process: ``whole`` is the comparison, ``bare`` what it cannot do without."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
from flax import linen, nnx

from nnx_migrate.parity.case import surroundings
from nnx_migrate.parity.models.devices import set_up
from nnx_migrate.parity.models.full import abstract_pair, run_full
from nnx_migrate.parity.models.options import ModelOptions, model_options
from nnx_migrate.parity.report import peak_rss_bytes
from nnx_migrate.parity.training.linen import unbox_tree
from nnx_migrate.parity.words import read


def main(words: Sequence[str]) -> None:
    """Print the measurement as JSON."""
    what, *rest = words
    options = model_options({**read(rest), "size": "full"})
    cpu, clock = time.process_time(), time.monotonic()
    found = _whole(options) if what == "whole" else _bare(options)
    spent = {"cpu": time.process_time() - cpu, "clock": time.monotonic() - clock}
    print(json.dumps({**found, **spent, "peak": peak_rss_bytes()}))


def _whole(options: ModelOptions) -> dict[str, Any]:
    report = run_full(options).report
    return {"ok": report.ok, "verdict": report.verdict}


def _bare(options: ModelOptions) -> dict[str, Any]:
    """Trace and lower the loss and its gradients of both variants, by jax and flax alone."""
    set_up(options)
    pair, mesh = abstract_pair(options)
    inputs, module, construct = pair.linen.inputs, pair.linen.linen, pair.nnx.nnx
    assert module is not None
    assert construct is not None
    with surroundings(pair.linen, mesh):
        with linen.logical_axis_rules(()):
            boxed = jax.eval_shape(module.init, jax.random.key(0), *inputs)
        _lower(pair.linen.loss, module.apply, unbox_tree(boxed), inputs)
        graphdef, state = nnx.split(nnx.eval_shape(lambda: construct(nnx.Rngs(0))))
        params, rest = nnx.split_state(state, nnx.Param, ...)

        def call(params: Any, *given: Any) -> Any:
            return nnx.merge(graphdef, params, rest, copy=True)(*given)

        _lower(pair.nnx.loss, call, params, inputs)
    return {}


def _lower(loss: Any, call: Callable[..., Any], values: Any, inputs: tuple[Any, ...]) -> None:
    def run(values: Any, *inputs: Any) -> Any:
        return loss(call(values, *inputs), *inputs)

    traced = jax.jit(jax.value_and_grad(run)).trace(values, *inputs)
    traced.lower(lowering_platforms=("cpu",)).as_text()


if __name__ == "__main__":
    main(sys.argv[1:])
