"""``python -m benchmarks.sharding``: resolution against flax's own, in one run.

Exit code 0: not slower than flax anywhere, and linear in the number of leaves; 1: one of them fails.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import flax
import jax
from flax import linen, nnx
from flax.core.spmd import logical_axis_rules

from benchmarks.sharding import states
from benchmarks.sharding.timing import Pair, Ratio, against, growth
from nnx_migrate.sharding import construct_named_sharding, resolve_spec

# Beyond this factor, time per leaf is taken to grow with the number of leaves.
LINEAR = 1.5


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sharding", description=__doc__)
    parser.add_argument("--leaves", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=5, help="runs of each; the best counts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    options = parser.parse_args(arguments)
    small, large = measure((max(options.leaves // 8, 1), options.leaves), options.turns)
    growths = [growth(one, other) for one, other in zip(small, large, strict=True)]
    sys.stdout.write(table(large, growths))
    if options.json:
        content = {
            "versions": {"jax": jax.__version__, "flax": flax.__version__},
            "ratios": [{**asdict(one), "ratio": one.ratio} for one in (*small, *large)],
            "growth": dict(zip([one.what for one in large], growths, strict=True)),
        }
        options.json.write_text(json.dumps(content, indent=1) + "\n")
    bad = faults(large, growths)
    sys.stderr.write("".join(f"error: {line}\n" for line in bad))
    return 1 if bad else 0


def measure(sizes: Sequence[int], turns: int) -> list[list[Ratio]]:
    """Each comparison, at each number of leaves."""
    each = [pairs(leaves) for leaves in sizes]
    found = [against(same_work, turns) for same_work in zip(*each, strict=True)]
    return [list(of_a_size) for of_a_size in zip(*found, strict=True)]


def pairs(leaves: int) -> list[Pair]:
    """What is compared, at one number of leaves."""
    names = [states.names_of(number) for number in range(leaves)]
    state = states.state(leaves)

    def ours(rules: Any, *mesh: Any) -> Callable[[], object]:
        return lambda: [resolve_spec(one, rules, *mesh) for one in names]

    def linens(rules: Any) -> Callable[[], object]:
        return lambda: [linen.logical_to_mesh_axes(one, rules) for one in names]

    def stock() -> object:
        with logical_axis_rules(states.PLAIN_RULES):
            return nnx.get_named_sharding(state, states.MESH)

    return [
        Pair("resolve_spec", leaves, ours(states.RULES), linens(states.RULES)),
        Pair("resolve_spec, rules in lists", leaves, ours(states.LISTS), linens(states.LISTS)),
        Pair(
            "resolve_spec with a mesh",
            leaves,
            ours(states.RULES, states.MESH),
            linens(states.RULES),
        ),
        Pair(
            "construct_named_sharding",
            leaves,
            lambda: construct_named_sharding(state, states.MESH, states.PLAIN_RULES),
            stock,
        ),
    ]


def table(ratios: list[Ratio], growths: list[float]) -> str:
    """One line per comparison."""
    lines = ["what                         leaves    ours ms   flax ms   ratio   growth per leaf"]
    lines += [
        f"{one.what:28} {one.leaves:6d} {one.ours * 1e3:10.1f} {one.flax * 1e3:9.1f} "
        f"{one.ratio:7.2f} {grown:9.2f}"
        for one, grown in zip(ratios, growths, strict=True)
    ]
    return "\n".join(lines) + "\n"


def faults(ratios: list[Ratio], growths: list[float]) -> list[str]:
    """What is slower than flax, or grows faster than the number of leaves."""
    slower = [
        f"{one.what}: expected not slower than flax, found {one.ratio:.2f} times its time"
        for one in ratios
        if one.ratio > 1
    ]
    return slower + [
        f"{one.what}: expected time linear in leaves, found {grown:.2f} times per leaf"
        for one, grown in zip(ratios, growths, strict=True)
        if grown > LINEAR
    ]


if __name__ == "__main__":
    sys.exit(main())
