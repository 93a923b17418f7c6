"""sst2: classifies sentences by a bidirectional LSTM; steps are epochs; no checkpoint of its own."""

from __future__ import annotations

import os

from benchmarks.programs import datasets
from benchmarks.programs.session import Session


def run(session: Session) -> None:
    """Run `train.train_and_evaluate`; the vocabulary is read from the current folder."""
    import train
    import vocabulary
    from configs import default

    datasets.install(12)
    os.chdir(session.workdir)
    words = [[word.encode() for word in datasets.WORDS]]
    vocabulary.Vocabulary(tokenized_sequences=words).save("vocab.txt")
    config = default.get_config()
    config.embedding_size, config.hidden_size, config.batch_size = 24, 16, 4
    config.num_epochs = session.steps
    session.keep(train.train_and_evaluate(config, str(session.workdir)))
