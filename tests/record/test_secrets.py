"""What must not reach an evidence file: secrets in every place that a module can hold them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.record.test_command import ROOT

MODELS = """\
import dataclasses
from typing import Any
import flax.linen as nn
import jax.numpy as jnp


@dataclasses.dataclass
class Config:
    width: int
    token: str = ''


class Holder:
    def __init__(self, width, token):
        self.width, self.token = width, token


def maker(token, width):
    def function(x):
        return x * width + len(token)
    return function


class Model(nn.Module):
    held: Any
    width: int = 3

    @nn.compact
    def __call__(self, x, key=None, extra=None):
        if self.width < 0:
            raise ValueError(self.held)
        scale = self.param('scale', lambda _: jnp.asarray(0.7182818, 'float32'))
        return nn.Dense(self.width)(x) * scale
"""

PROGRAM = """\
import functools, os, pathlib
import jax, jax.numpy as jnp, numpy as np
from models import *

secret = 'hunter2-' + os.environ['TOKEN']
key, x = jax.random.key(86420), jnp.full((2, 4), 0.31415926)
held = [
    secret,
    secret.encode(),
    [secret, {'width': secret}],
    {secret: 1},
    Config(3, secret),
    Holder(3, secret),
    maker(secret, 2),
    functools.partial(maker, token=secret),
    lambda: secret,
    pathlib.Path('/home') / secret,
    np.array([0.27182818, 42424242]),
    jnp.asarray([27182818]),
    np.float32(0.57721566),
    jax.random.key(97531),
    jax.random.PRNGKey(97531),
    ValueError(secret),
    Model(secret),
]
for one in held:
    Model(one).init(key, x, key=jax.random.PRNGKey(97531), extra={'width': x})
try:
    Model(secret, width=-1).init(key, x)
except ValueError:
    pass
"""


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of the evidence file, with whatever SQLite left beside it."""
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "models.py").write_text(MODELS)
    (folder / "main.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "nnx_migrate", "record", "--", sys.executable, "main.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TOKEN": "xyzzy", "JAX_PLATFORMS": "cpu"}
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return b"".join(file.read_bytes() for file in sorted(folder.glob("sizes.db*")))


def test_what_may_be_told_is_there(content: bytes) -> None:
    assert b"Model" in content
    assert b"Holder" in content
    assert b'"withheld"' in content
    assert b'"$": "key"' in content


@pytest.mark.parametrize("secret", ["xyzzy", "hunter2", "/home"])
def test_no_string_from_outside_the_source_is_stored(content: bytes, secret: str) -> None:
    assert secret.encode() not in content


@pytest.mark.parametrize(
    "digits", ["31415", "27182", "57721", "42424242", "71828", "86420", "97531"]
)
def test_no_value_of_an_array_or_key_is_stored(content: bytes, digits: str) -> None:
    readable = re.sub(rb"[0-9a-f]{64}", b"", content)  # hashes of files may hold any digits
    assert digits.encode() not in readable


def test_no_folder_is_stored(content: bytes, tmp_path: Path) -> None:
    assert str(tmp_path.parent).encode() not in content
