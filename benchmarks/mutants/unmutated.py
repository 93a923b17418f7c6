"""The pair without a fault: other seeds, sizes, meshes and options must not make it different."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.progress import Progress

from benchmarks.mutants.running import Row, run
from benchmarks.mutants.table import read, write

# What a run may be given; every list begins with the default.
GQA = {
    "mesh": ("fsdp:4,expert:2", "fsdp:2", "fsdp:8", "fsdp:2,tensor:2", "data:2,fsdp:2,expert:2", "fsdp:1"),
    "shard_mode": ("auto", "explicit"),
    "optimizer": ("adamw", "muon"),
    "num_decoder_layers": ("6", "12"),
    "emb_dim": ("64", "32", "96"),
    "num_query_heads": ("4", "8"),
    "head_dim": ("16", "24"),
    "mlp_dim": ("128", "64"),
    "vocab_size": ("256", "320"),
    "max_target_length": ("16", "7", "24"),
    "batch_size": ("8", "16"),
    "dtype": ("float32", "bfloat16"),
    "weight_dtype": ("float32", "bfloat16"),
    "scan_layers": ("true", "false"),
    "remat_policy": ("none", "minimal", "full"),
}  # fmt: skip
DEEPSEEK = {
    "mesh": GQA["mesh"],
    "num_decoder_layers": ("3", "4"),
    "first_num_dense_layers": ("1", "2"),
    "emb_dim": GQA["emb_dim"],
    "num_experts_per_tok": ("4", "2"),
    "sparse_matmul": ("false", "true"),
    "mtp_num_layers": ("0", "1"),
    "max_target_length": GQA["max_target_length"],
    "dtype": GQA["dtype"],
    "scan_layers": GQA["scan_layers"],
    "remat_policy": (*GQA["remat_policy"], "save_input"),
}
PIPELINE = {
    "mesh": ("stage:2,fsdp:2", "stage:4,fsdp:2", "stage:2,fsdp:4"),
    "num_decoder_layers": ("8", "12"),
    "num_layers_per_pipeline_stage": ("1", "2"),
    "pipeline_fsdp_ag_once": ("false", "true"),
    "batch_size": ("16",),
    "num_pipeline_microbatches": ("8", "4"),
}
MODELS: tuple[tuple[str, Mapping[str, tuple[str, ...]]], ...] = (
    ("llama2-7b", GQA),
    ("qwen3-0.6b", GQA),
    ("gemma3-12b", GQA),
    ("llama2-7b", PIPELINE),
    ("deepseek", DEEPSEEK),
    ("deepseek3-671b", DEEPSEEK),
)
CHANGES = 4  # of a run, beside its seed


def words_of(number: int) -> tuple[str, ...]:
    """The words of one run: the same for a number, whatever ran before."""
    choice = random.Random(number)
    model, choices = MODELS[number % len(MODELS)]
    always = [key for key in choices if choices is PIPELINE]
    keys = always or sorted(choice.sample(sorted(choices), CHANGES))
    given = {key: choice.choice(choices[key]) for key in keys}
    words = [f"{key}={value}" for key, value in given.items()]
    return (f"model={model}", f"seed={choice.randrange(1, 2**31)}", *words)


def run_unmutated(count: int, folder: Path, tree: str, bar: Progress) -> int:
    """Run ``count`` pairs, those that ran before on these sources left out; the exit code.

    A run whose words do not fit together (exit code 2) says nothing: another number takes its place.
    """
    path = folder / "unmutated.json"
    known = {row.words: row for row in read(path) if row.tree == tree}
    found: list[Row] = []
    number = 0
    with bar:
        task = bar.add_task("", total=count)
        while len(found) < count:
            words = words_of(number)
            number += 1
            told = " ".join(words)
            bar.update(task, description=told)
            if told not in known:
                known[told] = run(None, "tiny", words, tree)
                write(path, known.values())
            if known[told].verdict != "exit code 2":
                found.append(known[told])
                bar.advance(task)
    alarms = [row for row in found if row.verdict not in ("identical", "equal_by_rules")]
    for row in alarms:
        sys.stdout.write(f"{row.words}: {row.verdict}: {row.message[:400]}\n")
    sys.stdout.write(f"{len(alarms)} of {len(found)} pairs without a fault differ\n")
    return int(bool(alarms))
