"""Synthetic data behind the interface of tensorflow_datasets: seeded, in memory, of the real shapes.

`install` replaces `tfds.builder`, `tfds.load` and `tfds.testing.mock_data` in this process, so that
programs and their tests build their pipelines on it. Their preprocessing runs as it stands.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

SPLITS = ("train", "validation", "test")
WORDS = [
    "the",
    "a",
    "of",
    "in",
    "to",
    "we",
    "you",
    "they",
    "house",
    "tree",
    "river",
    "sees",
    "builds",
    "likes",
    "small",
    "green",
    "old",
    "new",
]
Example = dict[str, Any]


def _sentence(random: np.random.Generator) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz"
    made = "".join(random.choice([*letters], size=int(random.integers(3, 8))))
    return " ".join([*random.choice(WORDS, size=int(random.integers(3, 9))), made]) + " ."


def _mnist(random: np.random.Generator) -> Example:
    return {"image": random.integers(0, 2, (28, 28, 1)).astype(np.uint8)}


def _imagenet(random: np.random.Generator) -> Example:
    pixels = random.integers(0, 256, (256, 256, 3)).astype(np.uint8)
    return {
        "image": tf.io.encode_jpeg(pixels).numpy(),
        "label": np.int64(random.integers(0, 1000)),
    }


def _lm1b(random: np.random.Generator) -> Example:
    return {"text": _sentence(random)}


def _wmt(random: np.random.Generator) -> Example:
    return {"de": _sentence(random), "en": _sentence(random)}


def _sst2(random: np.random.Generator) -> Example:
    label, idx = random.integers(0, 2), random.integers(0, 1000)
    return {"idx": np.int32(idx), "label": np.int64(label), "sentence": _sentence(random)}


def _molecule(random: np.random.Generator) -> Example:
    nodes, edges = int(random.integers(3, 9)), int(random.integers(4, 12))
    labels = random.integers(0, 2, 128).astype(np.float32)
    labels[random.random(128) < 0.3] = np.nan  # not measured
    return {
        "edge_feat": random.integers(0, 4, (edges, 3)).astype(np.float32),
        "edge_index": random.integers(0, nodes, (edges, 2)),
        "labels": labels,
        "node_feat": random.integers(0, 9, (nodes, 9)).astype(np.float32),
        "num_edges": np.array([edges]),
        "num_nodes": np.array([nodes]),
    }


_EXAMPLES: dict[str, Callable[[np.random.Generator], Example]] = {
    "binarized_mnist": _mnist,
    "imagenet2012": _imagenet,
    "lm1b": _lm1b,
    "wmt17_translate": _wmt,
    "wmt14_translate": _wmt,
    "glue": _sst2,
    "ogbg_molpcba": _molecule,
}
_RAGGED = {"edge_feat": (None, 3), "edge_index": (None, 2), "node_feat": (None, 9)}


class Builder:
    """Stands for `tfds.core.DatasetBuilder`; every split holds ``size`` examples of its own."""

    def __init__(self, name: str, size: int) -> None:
        self._make = _EXAMPLES[name.split(":")[0].split("/")[0]]
        self._size = size
        self.info = SimpleNamespace(
            splits={split: SimpleNamespace(num_examples=size) for split in SPLITS},
            supervised_keys=("de", "en"),
            features={
                "sentence": tfds.features.Text(),
                "label": tfds.features.ClassLabel(num_classes=2),
            },
        )

    def download_and_prepare(self) -> None:
        """Nothing to fetch."""

    def as_dataset(self, split: Any, **options: Any) -> tf.data.Dataset:
        """The examples of the split that ``split`` (a name, a slice, an instruction) is of."""
        seed = next(i for i, name in enumerate(SPLITS) if name in str(split))
        random = np.random.default_rng(seed)
        examples = [self._make(random) for _ in range(self._size)]
        signature = {
            key: tf.TensorSpec(_RAGGED.get(key, np.shape(value)), tf.convert_to_tensor(value).dtype)
            for key, value in examples[0].items()
        }
        return tf.data.Dataset.from_generator(lambda: iter(examples), output_signature=signature)


def install(size: int) -> None:
    """Put synthetic data in the place of tensorflow_datasets' builders.

    Args:
      size: examples in each split; a test's ``mock_data(num_examples=...)`` overrides it.
    """
    sizes = [size]

    def builder(name: str, **options: Any) -> Builder:
        return Builder(name, sizes[-1])

    def load(name: str, *, split: Any, with_info: bool = False, **options: Any) -> Any:
        made = builder(name)
        data = made.as_dataset(split)
        return (data, made.info) if with_info else data

    @contextlib.contextmanager
    def mock_data(
        num_examples: int = 1, as_dataset_fn: Any = None, **options: Any
    ) -> Iterator[None]:
        old = Builder.as_dataset
        sizes.append(num_examples)
        if as_dataset_fn is not None:
            Builder.as_dataset = as_dataset_fn  # type: ignore[method-assign]  # what a mock is
        try:
            yield
        finally:
            sizes.pop()
            Builder.as_dataset = old  # type: ignore[method-assign]

    tfds.builder = builder
    tfds.load = load
    tfds.testing.mock_data = mock_data
