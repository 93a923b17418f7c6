"""The shim runs where flax.linen is gone. (``import flax`` itself still loads it.)"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Takes Linen away once flax has loaded it, and refuses to load it again.
WITHOUT_LINEN = """
import sys
import flax
from flax import nnx

for name in [name for name in sys.modules if name.split(".")[:2] == ["flax", "linen"]]:
    del sys.modules[name]
del flax.linen


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[:2] == ["flax", "linen"]:
            raise ImportError(f"{name} is gone")


sys.meta_path.insert(0, Refuse())
try:
    import flax.linen
except ImportError:
    pass
else:
    sys.exit("Linen could still be imported")

"""
USE = """
import importlib
import pkgutil

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

from nnx_migrate import sharding

for module in pkgutil.iter_modules(sharding.__path__):
    importlib.import_module(f"nnx_migrate.sharding.{module.name}")

rules = sharding.load_axis_rules("pure-fsdp").logical_axis_rules
mesh = AbstractMesh((4,), ("fsdp",), axis_types=(AxisType.Auto,))
spec = sharding.resolve_spec(("embed", "mlp"), rules, mesh)
assert spec == P("fsdp", None), spec
assert sharding.resolve_spec(("embed",)) == P(None)
named = NamedSharding(mesh, spec)
assert sharding.remove_fsdp(named).spec == P(None, None)
array = jax.ShapeDtypeStruct((8, 2), jnp.float32, sharding=named)
assert sharding.memory_report([array]).per_device == 16
assert [name for name in sys.modules if name.startswith("flax.linen")] == []
print("used", len(sharding.__all__))
"""


def test_every_file_loads_and_runs_without_linen() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LINEN + USE],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("used ")


def test_the_check_notices_an_import_of_linen() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LINEN + "from flax.linen import spmd\n"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 1
    assert "flax.linen is gone" in done.stderr
