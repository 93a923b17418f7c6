"""The writers of the programs (clu's and flax's TensorBoard), which write into the session instead of files."""

from __future__ import annotations

from typing import Any

from benchmarks.programs.session import Session


def install(session: Session) -> None:
    """Replace both libraries' writers. The programs look them up when they run."""
    import flax.metrics.tensorboard
    from clu import metric_writers

    class Scalars(metric_writers.MetricWriter):  # type: ignore[misc]  # no types
        """clu's interface."""

        def write_scalars(self, step: int, scalars: Any) -> None:
            for name in sorted(scalars):
                session.scalar(step, name, scalars[name])

        def write_texts(self, step: int, texts: Any) -> None:
            session.texts.extend(f"{step} {name}: {texts[name]}" for name in sorted(texts))

        def ignore(self, *args: Any, **kwargs: Any) -> None:
            """Hyperparameters, images and the like: no result of the training."""

        write_hparams = write_images = write_videos = write_audios = ignore
        write_histograms = write_pointcloud = write_summaries = flush = close = ignore

    class Summaries:
        """Stands for flax.metrics.tensorboard.SummaryWriter of one folder."""

        def __init__(self, folder: Any) -> None:
            self._prefix = next((one for one in ("train", "eval") if str(folder).endswith(one)), "")

        def scalar(self, tag: str, value: Any, step: int) -> None:
            session.scalar(step, f"{self._prefix} {tag}".strip(), value)

        def hparams(self, hparams: Any) -> None:
            """No result."""

        def flush(self) -> None:
            """Nothing is buffered."""

    session.patch(metric_writers, "create_default_writer", lambda *args, **kwargs: Scalars())
    session.patch(flax.metrics.tensorboard, "SummaryWriter", Summaries)
