"""A small training program, and the same with a part of it changed."""

from __future__ import annotations

from benchmarks.comments.keeping import lost_comments
from nnx_migrate.model import Finding, RewriteResult
from nnx_migrate.rewrite.forms import rewrite_in
from nnx_migrate.rewrite.request import RewriteRequest
from tests.rewrite.projects import ROOT, source

HEAD = """\
import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState


class Net(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, train: bool = False):
        x = nn.relu(nn.Dense(self.width)(x))
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.Dropout(0.5, deterministic=not train)(x)
        return nn.Dense(1)(x)


class Mlp(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.relu(nn.Dense(self.width)(x)))


"""
WITHOUT_STATISTICS = HEAD.replace("nn.BatchNorm(use_running_average=not train)", "nn.LayerNorm()")
CREATE = """\
def create(key):
    model = Mlp(4)
    params = model.init(key, jnp.ones((1, 3)))["params"]
    tx = optax.adam(0.1)
    return TrainState.create(apply_fn=model.apply, params=params, tx=tx)


"""
STEP = """\
@jax.jit
def step(state, x, y):
    def loss_fn(params):
        return jnp.mean((state.apply_fn({"params": params}, x) - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


"""
MAIN = """\
def main(key, x, y):
    state = create(key)
    for _ in range(3):
        state, loss = step(state, x, y)
    return loss
"""
PROGRAM = CREATE + STEP + MAIN
FULL = """\
class State(TrainState):
    batch_stats: dict


def create(key):
    model = Net(4)
    variables = model.init(key, jnp.ones((1, 3)))
    return State.create(
        apply_fn=model.apply,
        params=variables["params"],
        batch_stats=variables["batch_stats"],
        tx=optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1, momentum=0.9)),
    )


@jax.jit
def step(state, x, y, key):
    def loss_fn(params):
        out, updates = state.apply_fn(
            {"params": params, "batch_stats": state.batch_stats},
            x,
            train=True,
            rngs={"dropout": jax.random.fold_in(key, state.step)},
            mutable=["batch_stats"],
        )
        return jnp.mean((out - y) ** 2), updates

    (loss, updates), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
    state = state.apply_gradients(grads=grads, batch_stats=updates["batch_stats"])
    return state, loss


@jax.jit
def evaluate(state, x):
    variables = {"params": state.params, "batch_stats": state.batch_stats}
    return state.apply_fn(variables, x)


def main(key, x, y):
    state = create(key)
    losses = []
    for _ in range(4):
        state, loss = step(state, x, y, key)
        losses.append(loss)
    return losses, evaluate(state, x), int(state.step)
"""


def rewritten(files: dict[str, str], context: dict[str, str] | None = None) -> RewriteResult:
    """The result of ``--loop nnx``; no comment is lost."""
    request = RewriteRequest(
        ROOT,
        tuple(source(path, text) for path, text in files.items()),
        tuple(source(path, text) for path, text in (context or {}).items()),
        base=ROOT,
    )
    result = rewrite_in(request, "auto", "nnx")
    for file in result.files:
        if file.code is not None:
            assert lost_comments(files[file.path], file.code) == [], file.code
    return result


def about_loops(result: RewriteResult) -> list[Finding]:
    """What is said of loops."""
    return [one for one in result.findings if one.rule == "loop"]


def code(text: str) -> str:
    """The new text of a program that stands alone."""
    (file,) = rewritten({"m.py": HEAD + text}).files
    return file.code or HEAD + text


def kept(text: str) -> str:
    """Why the loop of a program stays functional; nothing of it changes but what must anyway."""
    functional = RewriteRequest(ROOT, (source("m.py", HEAD + text),), base=ROOT)
    (before,) = rewrite_in(functional, "auto").files
    result = rewritten({"m.py": HEAD + text})
    (file,) = result.files
    assert file.code == before.code
    found = about_loops(result)
    assert {one.outcome.value for one in found} == {"kept"}, found
    return found[0].message
