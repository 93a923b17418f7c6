"""A built-in model at full size: traced and lowered on an abstract mesh, nothing allocated."""

from __future__ import annotations

import dataclasses
import time

import jax
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from nnx_migrate.parity import run
from nnx_migrate.parity.case import mesh_of
from nnx_migrate.parity.comparison_result import ComparisonResult
from nnx_migrate.parity.evaluation.running import platform
from nnx_migrate.parity.models.devices import require_devices, set_up
from nnx_migrate.parity.models.load import load
from nnx_migrate.parity.models.options import ModelOptions
from nnx_migrate.parity.models.pair import Pair, pair_of, require_divisible
from nnx_migrate.parity.models.required_checks import final_report
from nnx_migrate.parity.sides.abstract import trace_linen, trace_nnx
from nnx_migrate.sharding.placing import AnyMesh

REQUIRED = (
    "stacks",
    "control",
    "paths",
    "shapes",
    "specs",
    "specs_after_step",
    "memory",
    "program",
)
COMPILED = "collectives"


def run_full(options: ModelOptions) -> ComparisonResult:
    """Compare what the two sides are without running them.

    With ``options.compile`` the mesh has simulated devices, and both programs are compiled for
    them. Raises BadWord with one line when the options do not fit the model or the machine.
    """
    start = time.monotonic()
    set_up(options)
    if options.compile:
        require_devices(options)
    pair, mesh = abstract_pair(options)
    linen = trace_linen(pair.linen, mesh, compile_too=options.compile)
    nnx = trace_nnx(pair.nnx, mesh, compile_too=options.compile)
    report = run.judge(pair.linen, linen, nnx)
    check_names = (*REQUIRED, COMPILED) if options.compile else REQUIRED
    report = final_report(report, options, check_names, start)
    return ComparisonResult(report, linen, nnx, *(platform() if options.compile else ("", 0)))


def abstract_pair(options: ModelOptions) -> tuple[Pair, AnyMesh]:
    """Both cases on abstract inputs, and their mesh.

    Raises BadWord when the mesh does not divide the model.
    """
    inputs = load(options.model.family).abstract_inputs(options.config)
    pair = pair_of(options, inputs)
    require_divisible(options, pair.linen.linen, inputs)
    mesh = _mesh(options, pair)
    batch = NamedSharding(mesh, PartitionSpec(*(options.rules.data_spec or ())[:1]))
    abstract_inputs = tuple(
        jax.ShapeDtypeStruct(one.shape, one.dtype, sharding=batch) for one in inputs
    )
    sides = (dataclasses.replace(one, inputs=abstract_inputs) for one in (pair.linen, pair.nnx))
    return Pair(*sides), mesh


def _mesh(options: ModelOptions, pair: Pair) -> AnyMesh:
    if options.compile:
        mesh = mesh_of(pair.linen)
        assert mesh is not None
        return mesh
    kind = AxisType.Auto if options.shard_mode == "auto" else AxisType.Explicit
    sizes, names = tuple(options.mesh.values()), tuple(options.mesh)
    return AbstractMesh(sizes, names, axis_types=(kind,) * len(names))
