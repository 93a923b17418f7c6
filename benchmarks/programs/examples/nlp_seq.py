"""nlp_seq: tags words of a CoNLL file of 256 words to a sentence; no checkpoint of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.programs.datasets import WORDS
from benchmarks.programs.session import Session

REPLICATED = True  # its state has an axis of devices


def run(session: Session) -> None:
    """Run `train.main`; its step is compiled by `jax.pmap`, where the state is read."""
    import jax
    import train

    data = session.workdir / "data.conll"
    _write(data)
    train.FLAGS(
        [
            "train",
            f"--model_dir={session.workdir}",
            f"--train={data}",
            f"--dev={data}",
            "--batch_size=2",
            "--eval_frequency=1",
            f"--num_train_steps={session.steps}",
        ]
    )
    pmap = jax.pmap
    session.patch(jax, "pmap", lambda *args, **kwargs: session.watched(pmap(*args, **kwargs)))
    train.main(["train"])


def _write(file: Path) -> None:
    random = np.random.default_rng(0)
    tags = {word: f"T{i % 5}" for i, word in enumerate(WORDS)}
    lines = []
    for _ in range(8):
        for i, word in enumerate(random.choice(WORDS, size=int(random.integers(4, 20)))):
            lines.append(f"{i + 1}\t{word}\t{word}\tX\t{tags[word]}\t_\t0\troot")
        lines.append("")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
