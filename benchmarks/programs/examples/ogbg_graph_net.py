"""ogbg_molpcba with its other network: ``GraphNet`` with skip connections and layer norm."""

from __future__ import annotations

from benchmarks.programs import datasets
from benchmarks.programs.session import Session

OWN_CHECKPOINT = True  # the program finds the one in its working folder


def run(session: Session) -> None:
    """Run `train.train_and_evaluate` on ``configs/default_graph_net.py``, made small."""
    import train
    from configs import default_graph_net

    datasets.install(12)
    config = default_graph_net.get_config()
    config.batch_size, config.latent_size, config.message_passing_steps = 4, 32, 2
    config.num_train_steps = session.steps
    config.log_every_steps = config.eval_every_steps = config.checkpoint_every_steps = 1
    session.keep(train.train_and_evaluate(config, str(session.workdir)))
