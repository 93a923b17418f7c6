"""One comparison in several processes, on one machine or many, by ``jax.distributed``.

Every process runs the same command with ``distributed=true``, and all of their devices are one mesh.
jax finds the others by itself under SLURM (``srun -n N nnx-migrate parity ...``), Open MPI, on
Kubernetes (an indexed job; needs the package ``kubernetes``) and on TPU pods. Every process fetches
every array whole and compares by itself; the first one prints and writes. Bad words are told by every
process: before they have met, none knows which it is.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from typing import TYPE_CHECKING

import jax
import numpy as np
from jax.experimental import multihost_utils

from nnx_migrate.parity.words import BadWord

if TYPE_CHECKING:
    from nnx_migrate.parity.outcome import CommandOutcome


def join() -> None:
    """Meet the other processes, before jax is first used. Raises BadWord when there are none."""
    _keep_stdout_clean()
    try:
        jax.distributed.initialize()
    except (ValueError, RuntimeError) as error:
        raise BadWord(
            f"distributed=true: jax found no cluster to join: {' '.join(str(error).split())} "
            "(start one process per host by srun, mpirun, an indexed job of Kubernetes or on a TPU pod)"
        ) from error


def _keep_stdout_clean() -> None:
    """Send to stderr what libraries write to the descriptor of stdout, as Gloo does when it connects."""
    try:
        descriptor = sys.stdout.fileno()
    except (AttributeError, OSError):
        return  # stdout is no file: a test reads it
    stdout = os.fdopen(os.dup(descriptor), "w", encoding=sys.stdout.encoding)
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), descriptor)
    sys.stdout = stdout


def is_first() -> bool:
    """Whether this process prints and writes."""
    return bool(jax.process_index() == 0)


def joint_outcome(outcome: CommandOutcome) -> CommandOutcome:
    """Return the outcome of all processes: the worst exit code, said by the first process only.

    Every process has to call this, whatever became of its comparison.
    """
    codes = np.ravel(multihost_utils.process_allgather(np.int32(outcome.exit_code))).tolist()
    worst = max(codes)
    apart = tuple(
        f"process {number}: exit code {code}"
        for number, code in enumerate(codes)
        if code != outcome.exit_code
    )
    lines = (*outcome.lines, *apart) if is_first() else ()
    return dataclasses.replace(outcome, exit_code=worst, lines=lines)
