"""ogbg_molpcba: a graph network on batches of molecules; its own checkpoints."""

from __future__ import annotations

from benchmarks.programs import datasets
from benchmarks.programs.session import Session

OWN_CHECKPOINT = True  # the program finds the one in its working folder


def run(session: Session) -> None:
    """Run `train.train_and_evaluate`, which evaluates and saves after every step."""
    import train
    from configs import test

    datasets.install(12)
    config = test.get_config()
    config.batch_size, config.latent_size, config.message_passing_steps = 4, 32, 2
    config.num_train_steps = session.steps
    config.log_every_steps = config.eval_every_steps = config.checkpoint_every_steps = 1
    session.keep(train.train_and_evaluate(config, str(session.workdir)))
