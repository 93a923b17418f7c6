"""``distributed=true``: the same command in two processes that jax finds as SLURM's, over loopback."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest

PROCESSES = 2
SIMULATED = "--xla_force_host_platform_device_count=4 --xla_backend_optimization_level=0"
Ended = tuple[int, str, str]


def free_port() -> int:
    """A port that nothing listens on, and below those that systems give away meanwhile."""
    for number in random.sample(range(20_000, 30_000), 100):
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", number))
            return number
    raise OSError("no free port from 20000 to 29999: expected one of 100 of them")


def together(*words: str) -> list[Ended]:
    """Run the command as two tasks of a job step: exit code, stdout and stderr of each."""
    step = {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": SIMULATED,
        "JAX_COORDINATOR_PORT": str(free_port()),
        "SLURM_JOB_ID": "7",
        "SLURM_STEP_NODELIST": "127.0.0.1",
        "SLURM_STEP_NUM_NODES": "1",
        "SLURM_NTASKS": str(PROCESSES),
    }
    started = []
    for number in range(PROCESSES):
        own = {"SLURM_PROCID": str(number), "SLURM_LOCALID": str(number)}
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", "nnx_migrate", "parity", "distributed=true", *words],
                env={**os.environ, **step, **own},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        told = [process.communicate(timeout=600) for process in started]
    finally:
        for process in started:
            process.kill()
    return [(one.returncode, *texts) for one, texts in zip(started, told, strict=True)]


@pytest.mark.slow
def test_two_processes_compare_one_model_and_the_first_one_tells(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    first, second = together(
        "model=llama2-7b", "mesh=fsdp:4,expert:2", "steps=2", f"report={report}"
    )
    assert (first[0], second[0]) == (0, 0), first[2] + second[2]
    assert first[1].startswith("llama2-7b size=tiny rules=default mesh=fsdp:4,expert:2: equal_by")
    assert second[1] == ""
    document = json.loads(report.read_text())
    assert (document["processes"], document["ok"]) == (2, True)
    checks = {check["name"]: check for check in document["checks"]}
    for name in ("specs_after_step", "init_values", "forward", "gradients", "losses_over_steps"):
        assert checks[name]["status"] == "pass", name
        assert checks[name]["leaves"] > 0, name


def test_a_mesh_that_leaves_devices_out_is_one_line_of_the_first_process() -> None:
    first, second = together("model=llama2-7b", "mesh=fsdp:4")
    line = (
        "parity: distributed=true: the mesh has 4 devices, the 2 processes have 8: "
        "pass mesh= with all of them\n"
    )
    assert first[:2] == (2, ""), first[2]
    assert first[2].endswith(line)
    assert second[:2] == (2, ""), second[2]
    assert "parity:" not in second[2]


def test_a_report_that_cannot_be_written_stops_all_processes(tmp_path: Path) -> None:
    first, second = together("model=llama2-7b", f"report={tmp_path / 'no' / 'report.json'}")
    assert (first[0], second[0]) == (2, 2)
    assert "expected a file in an existing directory" in first[2]
    assert "parity:" not in second[2]


def test_without_a_cluster_distributed_is_one_line() -> None:
    gone = ("SLURM_", "KUBERNETES_", "OMPI_", "JAX_COORDINATOR", "XLA_FLAGS")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(gone)}
    done = subprocess.run(
        [sys.executable, "-m", "nnx_migrate", "parity", "model=llama2-7b", "distributed=true"],
        env={**environment, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("parity: distributed=true: jax found no cluster to join: ")
    assert done.stderr.count("\n") == 1
