"""``nnx-migrate parity model=deepseek`` as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SIMULATED = "--xla_force_host_platform_device_count"
REQUIRED = {
    "stacks",
    "control",
    "paths",
    "shapes",
    "specs",
    "specs_after_step",
    "init_values",
    "forward",
    "loss",
    "gradients",
    "program",
    "memory",
}


def parity(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    return subprocess.run(
        [sys.executable, "-m", "nnx_migrate", "parity", *words],
        env={**environment, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("layers", "parameters"), [("stacked", 27), ("alone", 41)])
def test_deepseek_is_the_same_model_on_eight_devices(
    tmp_path: Path, layers: str, parameters: int
) -> None:
    report = tmp_path / "report.json"
    scan_layers = "true" if layers == "stacked" else "false"
    words = ["model=deepseek", "mesh=fsdp:4,expert:2", "steps=2", f"scan_layers={scan_layers}"]
    done = parity(*words, f"report={report}")
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(report.read_text())
    checks = {check["name"]: check for check in document["checks"]}
    passed = {name for name, check in checks.items() if check["status"] == "pass"}
    assert passed == REQUIRED | {"losses_over_steps"}
    assert (document["verdict"], document["ok"]) == ("equal_by_rules", True)
    assert document["rules_used"] == ["unit_mesh_axes", "dataflow"]
    assert (document["model"], document["versions"]["python"]) == (
        "deepseek2-16b (size=tiny)",
        sys.version.split()[0],
    )
    # the parameters, two moments of each, and the optimizer's count
    leaves = 3 * parameters + 1
    assert checks["specs"]["leaves"] == checks["specs_after_step"]["leaves"] == leaves
    assert not any("without logical" in line for line in checks["specs"]["details"])
    first, second, *_ = done.stdout.splitlines()
    assert first.startswith("deepseek2-16b size=tiny rules=default mesh=fsdp:4,expert:2: equal_by")
    assert second.split() == ["stacks", "pass", "2", "compared"]


WAYS = [
    ("model=llama2-7b",),
    ("model=deepseek", "shard_mode=explicit", "mtp_num_layers=1"),
    ("model=deepseek", "rules=shard-exp-on-fsdp", "sparse_matmul=true"),
    ("model=deepseek", "optimizer=muon", "zero1=true", "steps=2"),
    ("model=llama2-7b", "gradient_accumulation_steps=2", "zero1=true", "steps=2"),
    ("model=llama2-7b", "shard_mode=explicit"),
    ("model=llama2-7b", "mesh=stage:4,fsdp:2"),
    ("model=llama2-7b", "mesh=stage:2,fsdp:2", "shard_mode=explicit"),
    ("model=llama2-7b", "mesh=stage:2,data:2,fsdp:2", "zero1=true", "steps=2"),
    ("model=gemma3-12b", "num_decoder_layers=3"),
    ("model=qwen3-0.6b",),
    ("model=deepseek3-671b-batchsplit",),
    (
        "model=deepseek3-671b-batchsplit",
        "remove_size_one_mesh_axis_from_type=true",
        "sparse_matmul=false",
    ),
]


@pytest.mark.parametrize("words", WAYS)
def test_a_model_is_the_same_in_all_its_ways(words: tuple[str, ...]) -> None:
    done = parity(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split()[:2] for line in done.stdout.splitlines()[1:-1]]
    assert {name for name, status in lines if status == "pass"} >= REQUIRED


@pytest.mark.parametrize(
    "words",
    [
        ("model=llama2-7b",),
        ("model=llama2-7b", "scan_layers=false", "form=lazy"),
        *(
            pytest.param(words, marks=pytest.mark.slow)
            for words in (
                ("model=llama2-7b", "scan_layers=false"),
                ("model=llama2-7b", "form=lazy", "steps=2"),
                ("model=llama2-7b", "mesh=stage:2,fsdp:2", "num_layers_per_pipeline_stage=2"),
                ("model=gemma3-12b", "num_decoder_layers=3"),
            )
        ),
    ],
)
def test_a_model_with_dropout_is_the_same_and_draws_as_linen_does(words: tuple[str, ...]) -> None:
    done = parity(*words, "dropout_rate=0.1")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split()[:2] for line in done.stdout.splitlines()[1:-1]]
    assert {name for name, status in lines if status == "pass"} >= REQUIRED | {"rng"}


@pytest.mark.parametrize(
    "words",
    [
        ("model=deepseek3-671b",),
        pytest.param(
            (
                "model=deepseek3-671b-batchsplit",
                "optimizer=muon",
                "zero1=true",
                "mesh=data:8,fsdp:8",
            ),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_at_full_size_nothing_is_allocated(words: tuple[str, ...], tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = parity(*words, "size=full", f"report={report}")
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(report.read_text())
    checks = {check["name"]: check for check in document["checks"]}
    passed = {name for name, check in checks.items() if check["status"] == "pass"}
    assert passed == {
        *("stacks", "control", "paths", "shapes"),
        *("specs", "specs_after_step", "program", "memory"),
    }
    assert checks["paths"]["leaves"] == 32
    assert all(f"{name}: nothing has values" in " ".join(document["not_checked"]) for name in
               ("forward", "loss", "gradients"))  # fmt: skip
    assert document["peak_rss_bytes"] < 2e9


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("mesh=stage:4,fsdp:32", "pipeline_fsdp_ag_per_repeat=true"),
        ("mesh=stage:4,fsdp:32", "gradient_accumulation_steps=2"),
        ("shard_mode=explicit", "zero1=true", "gradient_accumulation_steps=2"),
        ("mesh=stage:4,fsdp:32", "pipeline_fsdp_ag_once=true", "num_pipeline_microbatches=8"),
        ("mesh=stage:4,fsdp:32", "shard_mode=explicit", "pipeline_parallel_layers=24"),
        (
            *("mesh=stage:4,data:2,fsdp:16", "zero1=true", "num_layers_per_pipeline_stage=2"),
            "pipeline_delay_activation_forwarding=true",
        ),
    ],
)
def test_llama_at_full_size_is_the_same_program(words: tuple[str, ...]) -> None:
    done = parity("model=llama2-7b", "size=full", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    statuses = dict(line.split()[:2] for line in done.stdout.splitlines()[1:-1])
    assert {name for name, status in statuses.items() if status == "pass"} == {
        *("stacks", "control", "paths", "shapes"),
        *("specs", "specs_after_step", "program", "memory"),
    }


@pytest.mark.slow
def test_deepseek3_routes_by_biased_sigmoids_in_groups() -> None:
    done = parity("model=deepseek3-671b", "rules=shard-exp-on-fsdp")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("deepseek3-671b size=tiny rules=shard-exp-on-fsdp mesh=fsdp:4,")
    lines = [line.split()[:2] for line in done.stdout.splitlines()[1:-1]]
    assert {name for name, status in lines if status == "pass"} == REQUIRED == {n for n, _ in lines}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("mesh=fsdp:3",), ("mesh: axis 0 of params/decoder/dense_layers/mlp/wi_0/kernel has size "
         "64, which fsdp:3 do not divide")),
        (("model=llama2-7b", "mesh=stage:2,fsdp:4", "num_pipeline_microbatches=4"),
         "mesh: axis 0 of a micro-batch has size 2, which fsdp:4 do not divide"),
        (("mesh=fsdp:8", "batch_size=4"),
         "mesh: axis 0 of the batch has size 4, which fsdp:8 do not divide"),
    ],
)  # fmt: skip
def test_a_mesh_that_does_not_divide_is_one_line(words: tuple[str, ...], line: str) -> None:
    model = () if words[0].startswith("model=") else ("model=deepseek",)
    done = parity(*model, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"parity: {line}\n"
