"""Programs around a model: they initialise, train, evaluate, and print all that they compute."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from benchmarks.generated.drawing import arguments
from benchmarks.generated.fronts import Front, has_methods
from benchmarks.generated.owners import owners
from benchmarks.generated.writing import indented

HEADER = """\
import dataclasses
import functools
from functools import partial
from typing import Any

import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import serialization, traverse_util
from flax.training import train_state


"""
SHOW = """\
def show(name, tree):
    for path, leaf in jax.tree_util.tree_leaves_with_path(UNBOX(tree)):
        leaf = np.asarray(leaf)
        print(name + jax.tree_util.keystr(path), leaf.dtype, leaf.shape, leaf.tobytes().hex())


def total(out):
    return sum(jnp.sin(leaf).sum() for leaf in jax.tree.leaves(out))


MUTABLE = COLLECTIONS
STREAMS = ("dropout", "noise", "gate")
x = INPUT


def keys_of(seed):
    return {name: jax.random.fold_in(jax.random.key(seed), i) for i, name in enumerate(STREAMS)}


"""
STATE = """\
class State(train_state.TrainState):
    extra: Any


"""
ALL = ["state", "cache", "stats", "batch_stats", "intermediates", "losses", "perturbations"]


@st.composite
def trainings(draw: st.DrawFn, front: Front, text: str) -> str:
    """``train.py`` with a ``main`` for the model of a project whose other files are ``text``."""
    writes = bool(re.search(r"\.value(\.|,| [+=]| =)|put_variable|Norm|perturb", text))
    draws = "make_rng" in text or "ropout" in text
    unbox = draw(st.sampled_from(["nn.unbox", "nn.meta.unbox", "flax.core.meta.unbox"]))
    mutable = ALL if "sow" in text else [*ALL[:4], "intermediates"]
    show = SHOW.replace("UNBOX", unbox).replace("COLLECTIONS", repr(mutable))
    head = HEADER + front.top + show.replace("INPUT", front.given)
    model = draw(arguments(front.model, inside=False))
    owner = draw(owners(model))
    lines = [*owner.lines]
    lines += draw(initialisations())
    style = draw(st.sampled_from(["state", "hand"]))
    lines += _state(style, draw(optimizers()))
    lines += draw(steps(style))
    lines += draw(extras(front, writes, draws))
    main = ["def main():", *indented(lines), "", "", 'if __name__ == "__main__":', "    main()", ""]
    return head + (STATE if style == "state" else "") + owner.top + "\n".join(main)


@st.composite
def initialisations(draw: st.DrawFn) -> list[str]:
    """Lines that make ``variables``, ``params`` and ``extra``."""
    kind = draw(st.sampled_from(["plain", "plain", "default", "jit", "partial", "output", "shapes", "function"]))  # fmt: skip
    train = draw(st.booleans())
    one_key = draw(st.integers(0, 4)) == 0
    keys = "jax.random.PRNGKey(3)" if one_key else '{"params": jax.random.key(0), **keys_of(1)}'
    lines = [f"rngs = {keys}"]
    if kind == "jit":
        lines += [
            'initialise = jax.jit(model.init, static_argnames=("train",))',
            f"variables = initialise(rngs, x, train={train})",
        ]
    elif kind == "partial":
        lines += [f"variables = jax.jit(partial(model.init, train={train}))(rngs, x)"]
    elif kind == "output":
        lines += [
            f"out, variables = model.init_with_output(rngs, x, {train})",
            'show("first", out)',
        ]
    elif kind == "shapes":
        lines += ["shapes = jax.eval_shape(model.init, rngs, x)", "print(sorted(shapes))"]
        lines += ["variables = model.init(rngs, x)"]
    elif kind == "function":
        lines += [
            "def initialise(key, x):",
            f"    return model.init(key, x, train={train})",
            "variables = initialise(rngs, x)",
        ]
    elif kind == "default":
        lines += ["variables = model.init(rngs, x)"]
    else:
        lines += [f"variables = model.init(rngs, x, train={train})"]
    lines += ['show("init ", variables)']
    popped = [
        ['params = variables["params"]', 'extra = {k: v for k, v in variables.items() if k != "params"}'],
        ['extra, params = flax.core.pop(variables, "params")'],
        ["extra = dict(variables)", 'params = extra.pop("params")'],
    ]  # fmt: skip
    return [*lines, *draw(st.sampled_from(popped))]


@st.composite
def optimizers(draw: st.DrawFn) -> str:
    """An optax transformation."""
    return draw(
        st.sampled_from(
            [
                "optax.sgd(0.1)",
                "optax.adam(1e-2)",
                "optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2))",
                'optax.adamw(0.1, mask=lambda p: traverse_util.path_aware_map(lambda k, _: k[-1] == "kernel", p))',
            ]
        )
    )


def _state(style: str, tx: str) -> list[str]:
    if style == "state":
        return [f"state = State.create(apply_fn=model.apply, params=params, tx={tx}, extra=extra)"]
    return [f"tx = {tx}", "opt_state = tx.init(params)"]


@st.composite
def steps(draw: st.DrawFn, style: str) -> list[str]:
    """Two steps of training: the second sees what the first wrote."""
    jit = draw(st.sampled_from([[], [], [], ["@jax.jit"]]))
    named = draw(st.sampled_from(["x, train=True", "x, True", "x"]))
    call = '{{"params": params, **{extra}}}, {named}, rngs=rngs, mutable=MUTABLE'
    if style == "state":
        call = call.format(extra="state.extra", named=named)
        return [
            *jit,
            "def step(state, x, rngs):",
            "    def loss_fn(params):",
            f"        out, changed = state.apply_fn({call})",
            "        return total(out), (out, changed)",
            "    grad_fn = jax.value_and_grad(loss_fn, has_aux=True)",
            "    (loss, (out, changed)), grads = grad_fn(state.params)",
            "    extra = {**state.extra, **changed}",
            "    return state.apply_gradients(grads=grads, extra=extra), loss, out, grads",
            "for i in range(2):",
            "    state, loss, out, grads = step(state, x, keys_of(10 + i))",
            '    show(f"step {i} ", {"loss": loss, "out": out, "grads": grads})',
            "params, extra = state.params, state.extra",
            'show("trained ", {"params": params, "extra": extra})',
        ]
    call = call.format(extra="extra", named=named)
    return [
        "def loss_fn(params, extra, x, rngs):",
        f"    out, changed = model.apply({call})",
        "    return total(out) ** 2, (out, changed)",
        *jit,
        "def step(params, extra, opt_state, x, rngs):",
        "    (loss, (out, changed)), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, extra, x, rngs)",
        "    updates, opt_state = tx.update(grads, opt_state, params)",
        "    return optax.apply_updates(params, updates), {**extra, **changed}, opt_state, loss, out",
        "for i in range(2):",
        "    params, extra, opt_state, loss, out = step(params, extra, opt_state, x, keys_of(10 + i))",
        '    show(f"step {i} ", {"loss": loss, "out": out})',
        'show("trained ", {"params": params, "extra": extra})',
    ]


@st.composite
def extras(draw: st.DrawFn, front: Front, writes: bool, draws: bool) -> list[str]:
    """What else programs do with a trained model; ``writes`` and ``draws``: what its calls need."""
    state = '{"params": params, **extra}'
    given = ("" if not draws else ", rngs=keys_of(5)") + (", mutable=MUTABLE" if writes else "")
    first = "[0]" if writes else ""
    name = front.model.name
    table = [
        [f'show("eval ", model.apply({state}, x, train=False{given}){first})'],
        [f'show("turned ", model.apply({state}, x, method=model.turned{given}){first})'],
        [f'show("turned ", model.apply({state}, x, method="turned"{given}){first})'],
        [f'show("turned ", model.apply({state}, x, method={name}.turned{given}){first})'],
        [
            f"bound = model.bind({state}{given})",
            'show("bound ", bound(x, train=False))',
        ],
        [
            f"_, seen = model.apply({state}, x, False, rngs=keys_of(5), mutable=[*MUTABLE, 'intermediates'], capture_intermediates=True)",
            'show("seen ", seen)',
        ],
        ['for name, leaf in sorted(traverse_util.flatten_dict(nn.unbox(params), sep="/").items()):', "    print(name, leaf.shape)"],
        [
            "stored = serialization.to_bytes(nn.unbox(params))",
            'show("restored ", serialization.from_bytes(nn.unbox(params), stored))',
        ],
        ["assert isinstance(model.tabulate(rngs, x), str)"],
        ["print(sum(leaf.size for leaf in jax.tree.leaves(params)))"],
        [
            f"shapes = jax.eval_shape(lambda v: model.apply(v, x, rngs=keys_of(2), mutable=MUTABLE)[0], {state})",
            "print(shapes)",
        ],
        [
            "many = jax.vmap(lambda key: model.init({'params': key, **keys_of(1)}, x))(jax.random.split(jax.random.key(7), 2))",
            'show("many ", many)',
        ],
        [
            f"slope = jax.grad(lambda x: total(model.apply({state}, x, rngs=keys_of(3), mutable=MUTABLE)[0]))(x)",
            'show("slope ", slope)',
        ],
        ["other = model.clone(flag=model.flag)", f'show("clone ", other.apply({state}, x, rngs=keys_of(4), mutable=MUTABLE))'],
        ["print(nn.get_partition_spec(variables))"],
        ["print(model.flag, isinstance(model, nn.Module))"],
        [
            "with nn.logical_axis_rules([('embed', None), ('mlp', None)]):",
            f'    show("ruled ", model.apply({state}, x, rngs=keys_of(4), mutable=MUTABLE)[0])',
        ],
        [
            "predict = jax.jit(lambda v, x: model.apply(v, x, train=False, rngs=keys_of(5), mutable=MUTABLE)[0])",
            f'show("predicted ", predict({state}, x))',
        ],
    ]  # fmt: skip
    if not front.is_float:
        table = [one for one in table if not one[0].startswith("slope")]
    table += _whole(state, writes) + (
        _parts(state, name, given) if has_methods(front.model) else []
    )
    chosen = draw(st.lists(st.sampled_from(range(len(table))), max_size=4, unique=True))
    return [line for i in chosen for line in table[i]]


def _whole(state: str, writes: bool) -> list[list[str]]:
    """What programs do with a model as a value, and with its parameters as a tree."""
    rest = "rngs=keys_of(6), mutable=MUTABLE"
    return [
        [f"out, _ = nn.apply(lambda m, x: m(x, train=False), model, mutable=MUTABLE)({state}, x, rngs=keys_of(6))", 'show("lifted ", out)'],
        ["made = nn.init(lambda m, x: m(x, False), model)({'params': jax.random.key(4), **keys_of(5)}, x)", 'show("made ", made)'],
        ["twin = dataclasses.replace(model, flag=not model.flag)", "print(twin == model, twin.flag, twin == twin.clone())"],
        ["print(hash(model) == hash(model.clone()), type(model).__name__, sorted(f.name for f in dataclasses.fields(model)))"],
        [
            "@partial(jax.jit, static_argnums=0)",
            "def forward(model, variables, x):",
            f"    return model.apply(variables, x, {rest})[0]",
            f'show("static ", forward(model, {state}, x))',
        ],
        [
            "flat = traverse_util.flatten_dict(flax.core.unfreeze(nn.unbox(params)))",
            'labels = traverse_util.unflatten_dict({k: "frozen" if k[-1] == "bias" else "free" for k in flat})',
            "print(labels)",
        ],
        [
            "averaged = optax.incremental_update(params, jax.tree.map(jnp.zeros_like, params), 0.1)",
            f'show("averaged ", model.apply({{"params": averaged, **extra}}, x, {rest})[0])',
        ],
        [
            f"out = jax.vmap(lambda s: model.apply(jax.tree.map(lambda v: v * s, {state}), x, {rest})[0])(jnp.array([0.5, 2.0]))",
            'show("scaled ", out)',
        ],
        [
            "def body(carry, key):",
            '    out, _ = model.apply({"params": carry, **extra}, x, rngs={"dropout": key, "noise": key, "gate": key}, mutable=MUTABLE)',
            "    return jax.tree.map(lambda v: v * 0.9, carry), total(out)",
            "_, losses = jax.lax.scan(body, nn.unbox(params), jax.random.split(jax.random.key(3), 2))",
            'show("scanned ", losses)',
        ],
        [
            f"out, back = jax.vjp(lambda p: model.apply({{'params': p, **extra}}, x, {rest})[0], params)",
            'show("back ", back(jax.tree.map(jnp.ones_like, out))[0])',
        ],
        ["print(jax.tree.structure(nn.unbox(params)).num_leaves, type(params).__name__)"],
    ]  # fmt: skip


def _parts(state: str, name: str, given: str) -> list[list[str]]:
    """Calls of the parts of a model that has ``encode`` and ``decode``."""
    return [
        [f'show("encoded ", model.apply({state}, x, method="encode"{given}))'],
        [f'show("encoded ", model.apply({state}, x, False, method={name}.encode{given}))'],
        [f'show("both ", model.apply({state}, x, method=lambda m, x: m.decode(m.encode(x)){given}))'],
        [f'show("decoded ", model.apply({state}, jnp.ones((3, 4)), method="decode"{given}))'],
        [f"bound = model.bind({state}{given})", 'show("bound ", bound.decode(bound.encode(x, False)))'],
        ['show("half ", model.init(rngs, x, method="encode"))'],
    ]  # fmt: skip
