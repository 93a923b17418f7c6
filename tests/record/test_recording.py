"""What a recorded program leaves in the evidence file."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nnx_migrate.evidence.read import Evidence, RecordedClass, RecordedSize, load
from tests.record.test_command import ROOT

MODELS = """\
import functools
from typing import Any, Sequence
import jax.numpy as jnp
import flax.linen as nn


class Mlp(nn.Module):
    hidden: int
    ratio: float = 2.0
    activation: str = 'gelu'

    @nn.compact
    def __call__(self, x):
        y = nn.Dense(int(self.hidden * self.ratio))(nn.relu(nn.Dense(self.hidden)(x)))
        return nn.Dense(x.shape[-1])(y) + x


class Net(nn.Module):
    widths: Sequence[int]
    token: Any = None

    def setup(self):
        self.blocks = [nn.remat(Mlp)(width) for width in self.widths]
        self.out = nn.Dense(3)

    def __call__(self, x):
        print('tracing')
        for block in self.blocks:
            x = block(x)
        return self.out(x.reshape(x.shape[0], -1))


class Grown(nn.Module):
    growth: int
    count: int

    @nn.compact
    def __call__(self, x):
        for i in range(self.count):
            x = jnp.concatenate([x, nn.Dense(self.growth)(x)], -1)
        return nn.Dense(7)(x)


class Initialised(nn.Module):
    kernel_init: Any

    @nn.compact
    def __call__(self, x):
        return nn.Dense(3, kernel_init=self.kernel_init)(x)


class Residual(nn.Module):
    filters: int

    @nn.compact
    def __call__(self, x):
        y = nn.Conv(self.filters, (3, 3), use_bias=False)(x)
        y = nn.BatchNorm(use_running_average=False)(y)
        if x.shape != y.shape:
            x = nn.Conv(self.filters, (1, 1), name='project')(x)
        return nn.Dropout(0.5, deterministic=False)(x + y)


class Scanned(nn.Module):
    @functools.partial(
        nn.scan, variable_broadcast='params', in_axes=1, split_rngs={'params': False}
    )
    @nn.compact
    def __call__(self, carry, x):
        return carry + nn.Dense(3)(x), None
"""

PROGRAM = """\
import os, sys
import jax, jax.numpy as jnp
from models import Grown, Initialised, Mlp, Net, Residual, Scanned

secret = 'hunter2-' + os.environ['TOKEN']
x = jnp.full((2, 5, 6), 0.123456789)
model = Net((8, 16), token=secret)
variables = model.init(jax.random.key(0), x)
print(model.apply(variables, x).shape)
Scanned().init(jax.random.key(0), jnp.ones((4, 3)), jnp.ones((4, 7, 5)))
mode = 'fan' + '_out'
he = jax.nn.initializers.variance_scaling(2.0, mode, 'uniform')
Initialised(he).init(jax.random.key(0), jnp.ones((2, 9)))
Grown(4, 3).init(jax.random.key(0), jnp.ones((2, 9)))
keys = {'params': jax.random.key(0), 'dropout': jax.random.key(1)}
image = jnp.ones((2, 8, 8, 3))
Residual(6).init(keys, image)
state = Residual(3).init(keys, image)
Residual(3).apply(state, image, rngs={'dropout': jax.random.key(2)}, mutable=['batch_stats'])
sys.exit(5)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "models.py").write_text(MODELS)
    (folder / "main.py").write_text(PROGRAM)
    return folder


@pytest.fixture(scope="module")
def done(project: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nnx_migrate", "record", "--", sys.executable, "main.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TOKEN": "xyzzy", "JAX_PLATFORMS": "cpu"}
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def evidence(project: Path, done: subprocess.CompletedProcess[str]) -> Evidence:
    return load(project / "sizes.db")


def recorded(evidence: Evidence, name: str) -> RecordedClass:
    (found,) = [cls for cls in evidence.classes if cls.key.qualname == name]
    return found


def size(cls: RecordedClass, text: str, argument: str = "inputs") -> RecordedSize:
    """The last axis of what the constructor call ``text`` builds is called with."""
    lines = MODELS.splitlines()
    (found,) = [
        size
        for (site, below, _, name, axis), size in cls.sizes.items()
        if lines[site.line - 1][site.column : site.end_column] == text
        and (below, name, axis) == ("", argument, -1)
    ]
    return found


def test_the_program_ran_as_always(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 5
    assert done.stdout == "tracing\ntracing\n(2, 3)\n"
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("nnx-migrate: sizes.db: 6 classes, ")


@pytest.mark.parametrize(
    ("cls", "call", "expression"),
    [
        ("Mlp", "nn.Dense(self.hidden)", "x.shape[-1]"),
        ("Mlp", "nn.Dense(int(self.hidden * self.ratio))", "self.hidden"),
        ("Mlp", "nn.Dense(x.shape[-1])", "int(self.hidden * self.ratio)"),
        ("Net", "nn.Dense(3)", "x.shape[-2] * x.shape[-1]"),
        ("Net", "nn.remat(Mlp)(width)", "x.shape[-1]"),
        ("Grown", "nn.Dense(self.growth)", "x.shape[-1] + index * self.growth"),
        ("Grown", "nn.Dense(7)", "x.shape[-1] + self.growth * self.count"),
        ("Residual", "nn.Conv(self.filters, (3, 3), use_bias=False)", "x.shape[-1]"),
        ("Residual", "nn.Conv(self.filters, (1, 1), name='project')", "x.shape[-1]"),
    ],
)
def test_every_size_is_the_expression_it_is_in_the_source(
    evidence: Evidence, cls: str, call: str, expression: str
) -> None:
    argument = "x" if call == "nn.remat(Mlp)(width)" else "inputs"
    assert size(recorded(evidence, cls), call, argument).expression == expression


def test_a_submodule_that_only_some_instances_have_is_told(evidence: Evidence) -> None:
    cls = recorded(evidence, "Residual")
    lines = MODELS.splitlines()
    sites = {lines[site.line - 1].strip(): site for site, *_ in cls.sizes}
    (project,) = [site for line, site in sites.items() if "project" in line]
    (first,) = [site for line, site in sites.items() if "(3, 3)" in line]
    assert (cls.trace_count, cls.seen_by(first), cls.seen_by(project)) == (2, 2, 1)


def test_fields_inputs_streams_and_collections_are_written_down(evidence: Evidence) -> None:
    cls = recorded(evidence, "Residual")
    wide, _ = cls.instances.values()
    assert wide.fields["fields"] == {"filters": 6}
    assert wide.inputs == {"x": {"$": "array", "shape": [2, 8, 8, 3], "dtype": "float32"}}
    assert wide.rngs == ("dropout",)
    assert wide.outermost


def test_a_file_is_known_by_hash_and_name_but_not_by_folder(
    evidence: Evidence, project: Path
) -> None:
    cls = recorded(evidence, "Net")
    assert cls.key.hash == hashlib.sha256(MODELS.encode()).hexdigest()
    assert (evidence.modules[cls.key.hash], evidence.names[cls.key.hash]) == ("models", "models.py")
    assert cls.key.hash in cls.depends
    assert str(project).encode() not in (project / "sizes.db").read_bytes()


def test_no_value_of_an_array_and_no_string_from_outside_is_stored(
    evidence: Evidence, project: Path
) -> None:
    content = (project / "sizes.db").read_bytes()
    assert b"xyzzy" not in content
    assert b"hunter2" not in content
    assert b"0.1234" not in content
    (net,) = recorded(evidence, "Net").instances.values()
    assert net.fields["fields"]["token"] == {"$": "withheld", "length": 13}
    kernel = recorded(evidence, "Initialised").instances.values()
    assert [one.fields["fields"]["kernel_init"]["fields"]["mode"] for one in kernel] == [
        {"$": "text", "value": "fan_out"}
    ]
    mlp = next(iter(recorded(evidence, "Mlp").instances.values()))
    assert mlp.fields["fields"]["activation"] == {"$": "text", "value": "gelu"}


def test_a_call_that_a_decorator_wraps_is_not_traced_alone(evidence: Evidence) -> None:
    cls = recorded(evidence, "Scanned")
    (number,) = cls.instances
    assert cls.failures == {number: "a decorator stands between __call__ and its callers"}
    assert cls.sizes == {}
