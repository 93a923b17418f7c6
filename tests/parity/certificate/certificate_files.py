"""A case small enough to be certified often, and certificates with one entry changed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

LINEN = """
import flax.linen as nn


class Model(nn.Module):
    @nn.compact
    def __call__(self, x, train=False):
        names = nn.with_logical_partitioning(nn.initializers.lecun_normal(), ("embed", "mlp"))
        x = x @ self.param("up", names, (4, 8))
        return nn.Dropout(0.5, deterministic=not train)(x)
"""

NNX = """
from flax import nnx


class Model(nnx.Module):
    def __init__(self, *, rngs):
        names = nnx.with_metadata(nnx.initializers.lecun_normal(), out_sharding=("embed", "mlp"))
        self.up = nnx.Param(names(rngs.params(), (4, 8)))
        self.Dropout_0 = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x, train=False):
        return self.Dropout_0(x @ self.up[...], deterministic=not train)
"""

CASE = """
import numpy as np


def linen():
    from models import Model
    return Model()


def inputs():
    return (np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4),)


def nnx(rngs):
    from models import Model
    return Model(rngs=rngs)


CASE = dict(mesh={"data": 2}, axis_rules=(("embed", "data"),), steps=2)
"""

WORDS = ("case=case.py", "before=before", "after=after", "map=map.json")


def write_case(folder: Path, after: str = NNX) -> None:
    """``case.py`` and ``map.json``, with the trees ``before`` and ``after``."""
    for tree, text in (("before", LINEN), ("after", after)):
        (folder / tree).mkdir()
        (folder / tree / "models.py").write_text(text)
        (folder / tree / "notes.txt").write_text("not read")
    (folder / "case.py").write_text(CASE)
    (folder / "map.json").write_text('{"schema": 1, "classes": []}')


def changed(text: str, change: Callable[[dict[str, Any]], object]) -> str:
    """The certificate with one change by hand."""
    content = copy.deepcopy(json.loads(text))
    change(content)
    return json.dumps(content)


# What somebody may change, and how the difference that names it begins.
TAMPERED: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a leaf's hash": (
        lambda c: c["linen"]["initial"]["params/up"].update(sha256="0" * 64),
        "values: Linen initial params/up: 000000000000... in the certificate, ",
    ),
    "a hash after the steps": (
        lambda c: c["nnx"]["after_steps"]["params/up"].update(sha256="0" * 64),
        "values: NNX after the steps params/up: 000000000000... in the certificate, ",
    ),
    "a shape": (
        lambda c: c["nnx"]["initial"]["params/up"].update(shape=[8, 4]),
        "paths: NNX initial params/up: float32[8,4] in the certificate, float32[4,8] now",
    ),
    "a dtype": (
        lambda c: c["nnx"]["gradients"]["params/up"].update(dtype="bfloat16"),
        "paths: NNX gradient params/up: bfloat16[4,8] in the certificate, float32[4,8] now",
    ),
    "a spec": (
        lambda c: c["nnx"]["specs"]["params/up"].update(spec="P()"),
        "specs: NNX params/up: (embed, mlp) P() placed P(data), after a step P(data) in the",
    ),
    "a logical name": (
        lambda c: c["linen"]["specs"]["params/up"].update(names=["embed", None]),
        "specs: Linen params/up: (embed, -) P(data) placed P(data), after a step P(data) in the",
    ),
    "a spec after the step": (
        lambda c: c["nnx"]["specs"]["params/up"].update(after_step=None),
        "specs: NNX params/up: (embed, mlp) P(data) placed P(data) in the certificate, ",
    ),
    "a loss": (
        lambda c: c["nnx"]["losses"].update({"step 2": "0x1.0p+0"}),
        "losses: NNX step 2: 0x1.0p+0 in the certificate, ",
    ),
    "a program": (
        lambda c: c["linen"]["programs"].update(forward="0" * 64),
        "programs: Linen forward: 000000000000... in the certificate, ",
    ),
    "a path that is left out": (
        lambda c: c["linen"]["initial"].pop("params/up"),
        "paths: Linen initial params/up: none in the certificate, float32[4,8] now",
    ),
    "a loss that is left out": (
        lambda c: c["nnx"]["losses"].pop("step 1"),
        "losses: NNX step 1: none in the certificate, 0x",
    ),
    "a path more": (
        lambda c: c["nnx"]["initial"].update(
            {"params/no": {"shape": [], "dtype": "int8", "sha256": None}}
        ),
        "paths: NNX initial params/no: int8[] in the certificate, none now",
    ),
    "the verdict": (
        lambda c: c.update(verdict="different"),
        "verdict: verdict: different in the certificate, equal_by_rules now",
    ),
    "ok": (lambda c: c.update(ok=False), "verdict: ok: false in the certificate, true now"),
    "the status of a check": (
        lambda c: c["checks"][0].update(status="not_run"),
        "checks: stacks: not_run, 2 compared in the certificate, pass, 2 compared now",
    ),
    "a check that is left out": (
        lambda c: c["checks"].pop(),
        "checks: checkpoint: none in the certificate, not_run, 0 compared now",
    ),
    "what was not checked": (
        lambda c: c["not_checked"].clear(),
        "not checked: rng: ",
    ),
    "the modes": (
        lambda c: c["modes"].clear(),
        "modes: train=True: none in the certificate, run now",
    ),
}  # fmt: skip
EXACT = ("a leaf's hash", "a hash after the steps", "a loss", "a program", "a loss that is left out",
         "what was not checked")  # fmt: skip
