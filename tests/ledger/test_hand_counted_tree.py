"""A small project counted by hand: every place in it is written down here, none is generated."""

from __future__ import annotations

from nnx_migrate.ledger import Count, Source, count

BLOCKS = """\
from __future__ import annotations

import flax
import flax.linen as nn
from flax import linen
from flax.linen import Dense as D
from flax.linen import initializers

ModuleDef = nn.Module
NAME = "nn.Dense"


class Block(nn.Module):
    # nn.Dense in a comment
    act: str = "nn.relu"
    inner: ModuleDef = nn.LayerNorm

    @nn.compact
    def __call__(self, x: "nn.Module", kernel=flax.linen.initializers.zeros):
        x = D(4, kernel_init=initializers.lecun_normal())(x)
        x = linen.relu(x)
        return self.inner()(x)
"""

INIT = """\
from .blocks import Block, nn
from .blocks import *
"""

TRAIN = """\
import jax
import optax
from pkg import Block, nn as layers


def shadowed(nn):
    return nn.Dense(3)


def train(key, x, factory):
    model = Block()
    tx = optax.adam(1e-3)
    variables = model.init(key, x)
    state = tx.init(variables)
    y = factory.apply(variables, x)
    shapes = jax.eval_shape(model.init, key, x)
    z = layers.Dense(3).init_with_output(key, x)
    return model.bind(variables).tabulate(key), D(3)
"""

OTHER = """\
import numpy as nn


def f(model, x):
    return nn.Dense, model.apply(x)
"""


def tree() -> list[Source]:
    return [
        Source("pkg/__init__.py", "pkg", INIT),
        Source("pkg/blocks.py", "pkg.blocks", BLOCKS),
        Source("pkg/train.py", "pkg.train", TRAIN),
        Source("other.py", "other", OTHER),
    ]


REFERENCES = [
    ("pkg/blocks.py", 9, 13, "flax.linen.Module", "pkg.blocks"),
    ("pkg/blocks.py", 13, 13, "flax.linen.Module", "pkg.blocks.Block"),
    ("pkg/blocks.py", 16, 12, "flax.linen.Module", "pkg.blocks.Block"),
    ("pkg/blocks.py", 16, 24, "flax.linen.LayerNorm", "pkg.blocks.Block"),
    ("pkg/blocks.py", 18, 6, "flax.linen.compact", "pkg.blocks.Block.__call__"),
    ("pkg/blocks.py", 19, 47, "flax.linen.initializers.zeros", "pkg.blocks.Block.__call__"),
    ("pkg/blocks.py", 20, 13, "flax.linen.Dense", "pkg.blocks.Block.__call__"),
    ("pkg/blocks.py", 20, 30, "flax.linen.initializers.lecun_normal", "pkg.blocks.Block.__call__"),
    ("pkg/blocks.py", 21, 13, "flax.linen.relu", "pkg.blocks.Block.__call__"),
    ("pkg/train.py", 17, 9, "flax.linen.Dense", "pkg.train.train"),
]

CALL_SITES = [
    ("pkg/train.py", 13, 17, "init", True),
    ("pkg/train.py", 15, 9, "apply", False),
    ("pkg/train.py", 17, 9, "init_with_output", True),
    ("pkg/train.py", 18, 12, "bind", True),
    ("pkg/train.py", 18, 12, "tabulate", True),
]


def counted() -> Count:
    return count(tree())


def test_every_reference_of_the_tree_is_where_the_hand_count_has_it() -> None:
    found = [
        (one.path, one.line, one.column, one.symbol, one.scope) for one in counted().references
    ]
    assert found == REFERENCES


def test_every_call_site_of_the_tree_is_where_the_hand_count_has_it() -> None:
    found = [
        (one.path, one.line, one.column, one.symbol, one.certain) for one in counted().call_sites
    ]
    assert found == CALL_SITES


def test_a_method_named_without_a_call_is_a_handle_and_no_call_site() -> None:
    assert [(one.path, one.line, one.symbol) for one in counted().handles] == [
        ("pkg/train.py", 16, "init")
    ]


def test_the_linen_class_of_the_tree_is_found() -> None:
    assert [(one.path, one.line, one.symbol) for one in counted().classes] == [
        ("pkg/blocks.py", 13, "pkg.blocks.Block")
    ]


def test_the_order_of_the_sources_does_not_matter() -> None:
    assert count(list(reversed(tree()))) == counted()


def test_counting_only_one_file_still_follows_imports_into_the_others() -> None:
    found = count(tree(), only={"pkg/train.py"})
    assert [(one.path, one.line) for one in found.references] == [("pkg/train.py", 17)]
    assert len(found.call_sites) == len(CALL_SITES)
    assert found.paths == ("pkg/train.py",)
