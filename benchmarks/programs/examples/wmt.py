"""wmt: translation with packed batches and beam search.

Under jax 0.10.2 it cannot read the checkpoints that it writes (they keep the axis of devices), with
Linen either: the state that it creates is set from a checkpoint instead.
"""

from __future__ import annotations

from typing import Any

from benchmarks.programs import datasets
from benchmarks.programs.session import Session

REPLICATED = True  # its state has an axis of devices


def run(session: Session, share_embeddings: bool = True) -> None:
    """Run `train.train_and_evaluate`, which evaluates and translates after every step."""
    import train
    from configs import default

    datasets.install(64)
    config = default.get_config()
    shrink(config, session)
    config.restore_checkpoints = False
    config.share_embeddings = share_embeddings
    config.logits_via_embedding = share_embeddings
    save = session.saving(train.checkpoints.save_checkpoint_multiprocess)
    session.patch(train.checkpoints, "save_checkpoint_multiprocess", save)
    train.train_and_evaluate(config, str(session.workdir))


def shrink(config: Any, session: Session) -> None:
    """Make a config of lm1b or wmt small; all that their names have in common."""
    config.max_corpus_chars, config.vocab_size = 4000, 64
    config.per_device_batch_size, config.warmup_steps = 2, 2
    config.num_train_steps = session.steps
    config.num_eval_steps = config.num_predict_steps = 1
    config.eval_every_steps = config.checkpoint_every_steps = 1
    config.num_layers, config.num_heads = 2, 2
    config.qkv_dim = config.emb_dim = 32
    config.mlp_dim = 64
    config.max_target_length = config.max_eval_target_length = 64
    config.max_predict_length = 24
