"""What rewriting costs over classes and files of any length: is the time linear?

    python -m benchmarks.lazy --generated [--form auto] [--size 1.0]

A class of 5,000 methods and a file of 100,000 lines (times ``size``), as ratios to LibCST's own
parse and code generation of the same text, and the ratio of a tenth of it for comparison.
"""

from __future__ import annotations

import gc
import time
from pathlib import Path

import libcst

from nnx_migrate.rewrite.forms import rewrite_in
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.files import SourceText

_HEAD = "import jax.numpy as jnp\nimport flax.linen as nn\n\n\n"
_METHOD = """    def part_{0}(self, x):
        y = nn.relu(x) * {0}
        return jnp.sum(y, axis=-1, keepdims=True) + x

"""
_CLASS = """class Block{0}(nn.Module):
    features: int = {0}

    @nn.compact
    def __call__(self, x):
        # One of many.
        y = nn.Dense(self.features)(x)
        return nn.LayerNorm()(nn.relu(y))


"""


def long_class(methods: int) -> str:
    """A Linen class with that many methods."""
    body = "".join(_METHOD.format(one) for one in range(methods))
    call = (
        "    @nn.compact\n    def __call__(self, x):\n        return nn.Dense(3)(self.part_0(x))\n"
    )
    return f"{_HEAD}class Long(nn.Module):\n{body}{call}"


def long_file(lines: int) -> str:
    """A file of about that many lines, of small Linen classes."""
    return _HEAD + "".join(_CLASS.format(one) for one in range(1, lines // 10 + 1))


def measure(form: str, size: float) -> dict[str, float]:
    """Ratios by what was rewritten."""
    gc.disable()  # as the command does
    sizes = {"class of {} methods": (long_class, 5_000), "file of {} lines": (long_file, 100_000)}
    found: dict[str, float] = {}
    for name, (make, count) in sizes.items():
        for part in (0.1, 1.0):
            number = int(count * size * part)
            found[name.format(number)] = _ratio(make(number), form)
    return found


def _ratio(text: str, form: str) -> float:
    start = time.process_time()
    assert libcst.parse_module(text).code == text
    own = time.process_time() - start
    path = Path("/project/m.py")
    source = SourceText(path, text)
    start = time.process_time()
    result = rewrite_in(RewriteRequest(path.parent, (source,), base=path.parent), form)
    spent = time.process_time() - start
    assert all(one.code for one in result.files), result.files
    return spent / own
