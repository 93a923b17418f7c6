"""What a recorded class meets around it: the arguments of its function, how it was called."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nnx_migrate.cli import main
from nnx_migrate.evidence.observations import Instance
from nnx_migrate.evidence.read import load
from nnx_migrate.parity.command import run
from tests.record.test_command import ROOT

# What evidence does for the explicit form; what stays lazy, others test.
pytestmark = pytest.mark.usefixtures("explicit_engine")

PROGRAM = """\
import functools
import os
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
from flax import linen as nn

T = TypeVar('T')


def make(width, names, token, act=jax.nn.relu, lift=nn.remat, *rest, **more):
    class Foo(nn.Module):
        @functools.partial(nn.remat, static_argnums=(2,))
        @nn.compact
        def __call__(self, x, train: bool, *others, scale=1.0, **options):
            assert isinstance(train, bool)
            x = nn.Dense(width, use_bias='kernel' in names)(x)
            return scale * (act(x) + options.get('shift', 0))

    return Foo


def generic(width, values):
    class Bar(nn.Module, Generic[T]):
        @nn.compact
        def __call__(self, x):
            count = self.variable('state', 'count', lambda: 0)
            if self.is_mutable_collection('state'):
                count.value += 1
            return nn.Dense(width)(x)

    return Bar


class Coder(nn.Module):
    def setup(self):
        self.dense = nn.Dense(2)

    def encode(self, x, *, scale):
        return scale * self.dense(x)


class Parts(nn.Module):
    def setup(self):
        self.one, self.two = nn.Dense(2), nn.Dense(3)

    def first(self, x):
        return self.one(x)

    def second(self, x):
        return self.two(x)

    def both(self, x):
        return self.one(x), self.two(x)


class Norm(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        return nn.BatchNorm(use_running_average=not train)(nn.Dense(3)(x))


def twice(x):
    class Pair(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(3)(x)

    Pair().init(jax.random.key(0), x)

    class Pair(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.gelu(nn.Dense(2)(x))

    Pair().init(jax.random.key(0), x)


if __name__ == '__main__':
    twice(jnp.ones((2, 3)))
    x, secret = jnp.ones((2, 5)), 'hunter2-' + os.environ['TOKEN']
    for width in (3, 4):
        foo = make(width, {'kernel'}, secret, extra=secret)()
        foo.init(jax.random.key(0), x, True, shift=1)
    bar = generic(2, (0.123456789 * x, secret))()
    variables = bar.init(jax.random.key(0), x)
    bar.apply(variables, 2 * x)
    bar.apply(variables, 2 * x, mutable=['state'])
    bar.apply(variables, jnp.ones((3, 5)), mutable='state')
    Coder().init(jax.random.key(0), x, scale=2.0, method='encode')
    variables = Parts().init(jax.random.key(0), x, method='both')
    Parts().apply(variables, x, method='first')
    variables = Norm().init(jax.random.key(0), x, train=False)
    Norm().apply(variables, x=x, train=True, mutable=['batch_stats'])
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("around")
    (folder / "before").mkdir()
    (folder / "before/nets.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "nnx_migrate", "record", "-o", str(folder / "sizes.db")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "TOKEN": "xyzzy"}
    subprocess.run(
        [*command, "--", sys.executable, "nets.py"],
        cwd=folder / "before",
        env=environment,
        check=True,
        capture_output=True,
    )
    return folder


def instances(project: Path, name: str) -> list[Instance]:
    classes = load(project / "sizes.db").classes
    (found,) = [one for one in classes if one.key.qualname == name]
    return list(found.instances.values())


def test_arguments_of_the_function_around_a_class_are_stored(project: Path) -> None:
    found = instances(project, "make.<locals>.Foo")
    assert [one.arguments["width"] for one in found] == [3, 4]
    assert found[0].arguments["act"] == {"$": "name", "module": "jax.nn", "name": "relu"}
    names = {"$": "set", "items": [{"$": "text", "value": "kernel"}], "frozen": False}
    assert found[0].arguments["names"] == names


def test_arguments_with_a_string_from_outside_are_left_out(project: Path) -> None:
    assert {*instances(project, "make.<locals>.Foo")[0].arguments} == {
        *("width", "names", "act", "lift", "rest")
    }
    assert {*instances(project, "generic.<locals>.Bar")[0].arguments} == {"width"}
    content = (project / "sizes.db").read_bytes()
    assert not [word for word in (b"hunter2", b"xyzzy", b"0.12345") if word in content]


def test_how_inputs_were_passed_is_stored_in_the_order_of_the_call(project: Path) -> None:
    passed = instances(project, "make.<locals>.Foo")[0].argument_kinds
    assert list(passed.items()) == [
        ("x", "position"),
        ("train", "position"),
        ("options", "keywords"),
    ]


def test_classes_of_one_name_are_recorded_apart(project: Path) -> None:
    assert len(instances(project, "twice.<locals>.Pair:1")) == 1
    assert len(instances(project, "twice.<locals>.Pair")) == 1


def test_calls_alike_are_one_instance_that_was_initialised_and_mutable(project: Path) -> None:
    first, second = instances(project, "generic.<locals>.Bar")
    assert (first.is_initialization, first.mutable) == (True, ("state",))
    assert (second.is_initialization, second.mutable) == (False, ("state",))


ALL = "11 recorded modules: 8 identical, 3 not compared"


def replayed(project: Path) -> tuple[int, str]:
    after = project / "after"
    words = [f"case={project}/sizes.db", f"before={project}/before", f"after={after}"]
    outcome = run([*words, f"map={project}/map.json"])
    return outcome.exit_code, "\n".join(outcome.lines)


def test_local_classes_are_replayed_with_their_arguments(project: Path) -> None:
    words = ["rewrite", str(project / "before"), "--output", str(project / "after")]
    main([*words, "--map", str(project / "map.json")])
    code, text = replayed(project)
    assert (code, text.splitlines()[-1].partition(": ")[2]) == (0, ALL), text
    first, second, third = [one for one in text.splitlines() if "not compared  " in one]
    assert "Pair:1(x[2,3])" in first
    assert "Pair(x[2,3])" in second
    assert "the class stays Linen" in first
    assert "Parts(x[2,5]).first" in third
    assert "init by this method alone" in third
    nets = project / "after/nets.py"
    changed = nets.read_text().replace("scale * (act", "scale * (-act")
    nets.write_text(changed.replace("nnx.gelu(", "nnx.relu("))
    code, text = replayed(project)
    assert (code, "2 different, 6 identical" in text) == (1, True), text
    assert re.search(r"<locals>\.Foo\(.*\) +different", text)
    assert re.search(r"<locals>\.Bar\(x\[2,5\]\) +identical", text)
