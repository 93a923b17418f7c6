"""seq2seq: adds numbers by an LSTM that decodes its own output; no checkpoint of its own."""

from __future__ import annotations

from typing import Any

from benchmarks.programs.session import Session


def run(session: Session) -> None:
    """Run `train.train_and_evaluate`, which decodes a batch after every step but the first."""
    import train

    flags = ["--batch_size=8", "--hidden_size=32", "--decode_frequency=1"]
    train.FLAGS(["train", f"--num_train_steps={session.steps}", *flags])
    step = session.watched(train.train_step)

    def watched(*args: Any) -> Any:
        result = step(*args)
        metrics = result[1] if isinstance(result, tuple) else result
        session.scalar(session.state.step, "step loss", metrics["loss"])
        return result

    session.patch(train, "train_step", watched)
    log = train.log_decode

    def log_decode(question: str, inferred: str, golden: str) -> None:
        session.texts.append(f"{question} = {inferred} ({golden})")
        log(question, inferred, golden)

    session.patch(train, "log_decode", log_decode)
    session.keep(train.train_and_evaluate(str(session.workdir)))
