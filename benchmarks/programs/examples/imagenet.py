"""imagenet: a ResNet-18 on 224 x 224 JPEG images; its own checkpoints."""

from __future__ import annotations

import functools

from benchmarks.programs import datasets
from benchmarks.programs.session import Session

OWN_CHECKPOINT = True  # the program finds the one in its working folder
AXIS = "batch"  # its batch norm averages over the devices


def run(session: Session) -> None:
    """Run `train.train_and_evaluate`, which evaluates after every second step."""
    import tensorflow as tf
    import train
    from configs import default

    datasets.install(4)
    # Crops are drawn from the seed 0, which TensorFlow refuses where it has to be deterministic.
    crop = tf.image.sample_distorted_bounding_box
    tf.image.sample_distorted_bounding_box = functools.partial(crop, seed=1)
    config = default.get_config()
    config.model = "ResNet18"
    config.batch_size, config.warmup_epochs = 2, 1
    config.num_train_steps, config.steps_per_eval = session.steps, 1
    config.log_every_steps, config.prefetch, config.shuffle_buffer_size = 1, 1, 4
    config.profile = False
    session.keep(train.train_and_evaluate(config, str(session.workdir)))
