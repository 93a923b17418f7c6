"""Transcripts on disk: a program that ran once in these versions need not run again.

Linen's program is the same whatever the tool writes, and most of what the tool writes is the same
after a change of the tool.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.generated.running import Raised, TooSlow, Transcript, transcript
from benchmarks.sources import sources_digest

# What rewritten programs import of the package.
RUN_TIME = tuple(f"nnx_migrate/{one}" for one in ("linen", "nn", "numerics", "sharding"))
_hashed = functools.cache(sources_digest)
Runner = Callable[[Mapping[str, str]], Transcript]


@dataclass(frozen=True)
class Transcripts:
    """Runs programs, and answers from ``folder`` what ran before."""

    folder: Path

    def __call__(self, files: Mapping[str, str]) -> Transcript:
        """As `transcript`."""
        path = self.folder / f"{digest(files)}.z"
        if path.is_file():
            return _transcript(path.read_bytes())
        found = transcript(files)
        if not (isinstance(found, Raised) and found.kind == TooSlow.__name__):
            self.folder.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}")  # other processes meet whole files only
            part.write_bytes(_bytes(found))
            part.replace(path)
        return found


def digest(files: Mapping[str, str]) -> str:
    """A hash of the program and of all that computes it."""
    rewritten = any("nnx_migrate" in text for text in files.values())
    run_time = _hashed(RUN_TIME) if rewritten else ""
    parts = [_versions(), run_time, json.dumps([*files.items()])]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@functools.cache
def _versions() -> str:
    packages = ("flax", "jax", "jaxlib", "numpy", "optax")
    flags = {name: value for name, value in os.environ.items() if name.startswith(("JAX_", "XLA_"))}
    flags.pop("JAX_COMPILATION_CACHE_DIR", None)
    return json.dumps([sys.version, [version(one) for one in packages], sorted(flags.items())])


def _bytes(found: Transcript) -> bytes:
    value = {"raised": astuple(found)} if isinstance(found, Raised) else {"lines": found}
    return zlib.compress(json.dumps(value).encode(), 1)


def _transcript(data: bytes) -> Transcript:
    value = json.loads(zlib.decompress(data))
    return Raised(*value["raised"]) if "raised" in value else list(value["lines"])
