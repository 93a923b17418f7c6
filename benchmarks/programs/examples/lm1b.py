"""lm1b: a language model with logical axis names on a mesh; samples texts; its own checkpoints."""

from __future__ import annotations

from benchmarks.programs import datasets
from benchmarks.programs.examples.wmt import shrink
from benchmarks.programs.session import Session

OWN_CHECKPOINT = True  # the program finds the one in its working folder


def run(session: Session) -> None:
    """Run `train.train_and_evaluate`, which evaluates and predicts after every step."""
    import train
    from configs import default

    datasets.install(64)
    config = default.get_config()
    shrink(config, session)
    config.eval_per_device_batch_size = 2
    save = session.saving(train.checkpoints.save_checkpoint_multiprocess)
    session.patch(train.checkpoints, "save_checkpoint_multiprocess", save)
    train.train_and_evaluate(config, str(session.workdir))
