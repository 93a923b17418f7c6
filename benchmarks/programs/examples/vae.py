"""vae: 784 pixels of binarized MNIST; steps are epochs of two steps; no checkpoint of its own."""

from __future__ import annotations

from typing import Any

from benchmarks.programs import datasets
from benchmarks.programs.session import Session

BATCH = 16


def run(session: Session) -> None:
    """Run `train.train_and_evaluate`; the loss of each step is computed from what it returned."""
    import models
    import train
    from configs import default

    datasets.install(2 * BATCH)
    config = default.get_config()
    config.batch_size, config.num_epochs = BATCH, session.steps
    step = train.train_step

    def watched(*args: Any) -> Any:
        result = session.watched(step)(*args)
        *_, batch, key, latents = args
        outputs = models.model(latents).apply({"params": session.state.params}, batch, key)
        recon, mean, logvar = outputs
        metrics = train.compute_metrics(recon, batch, mean, logvar)
        session.scalar(session.state.step, "loss", metrics["loss"])
        return result

    session.patch(train, "train_step", watched)
    train.train_and_evaluate(config, str(session.workdir))
