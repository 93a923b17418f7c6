"""The words of ``parity model=``: what they mean, and one clear line for what cannot be."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from nnx_migrate.parity.command import run
from nnx_migrate.parity.models.load import load
from nnx_migrate.parity.models.options import model_options
from nnx_migrate.parity.models.pair import pair_of, require_divisible
from nnx_migrate.parity.models.registry import MODELS
from nnx_migrate.parity.words import read


def test_defaults_are_the_tiny_model_on_eight_devices() -> None:
    options = model_options({"model": "deepseek"})
    assert (options.model.name, options.size, options.rules.name) == (
        "deepseek2-16b",
        "tiny",
        "default",
    )
    assert {axis: size for axis, size in options.mesh.items() if size > 1} == {
        "fsdp": 4,
        "expert": 2,
    }
    assert (options.devices, options.seed, options.steps) == (8, 0, 0)
    assert tuple(options.mesh) == options.rules.mesh_axes
    assert options.describe() == "deepseek2-16b size=tiny rules=default mesh=fsdp:4,expert:2"


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_a_mesh_of_its_own_at_full_size(name: str) -> None:
    options = model_options({"model": name, "size": "full"})
    inputs = load(options.model.family).abstract_inputs(options.config)
    require_divisible(options, pair_of(options, inputs).linen.linen, inputs)  # else BadWord
    assert math.prod(options.mesh.values()) == options.devices > 8


@pytest.mark.parametrize(
    ("words", "batch"),
    [
        ({}, 32),
        ({"batch_size": "64"}, 64),
        ({"size": "full"}, 4 * 4 * 512),
        ({"size": "full", "batch_size": "4096"}, 4096),
    ],
)
def test_a_batch_that_is_not_told_is_one_for_every_micro_batch(
    words: dict[str, str], batch: int
) -> None:
    options = model_options({"model": "deepseek", "gradient_accumulation_steps": "4", **words})
    assert (options.gradient_accumulation_steps, options.config.batch_size) == (4, batch)
    assert options.describe().endswith(" gradient_accumulation_steps=4")


@pytest.mark.parametrize(
    ("words", "streams"),
    [
        (["model=llama2-7b", "dropout_rate=0.1", "seed=3"], {"dropout": 3}),
        (["model=llama2-7b", "dropout_rate=0.1", "seed=3", "form=lazy"], {"dropout": 3}),
        (["model=llama2-7b", "seed=3"], {}),
        (["model=deepseek", "seed=3"], {}),
    ],
)
def test_both_sides_have_the_stream_of_dropout_where_there_is_dropout(
    words: list[str], streams: dict[str, int]
) -> None:
    options = model_options(read(words))
    pair = pair_of(options, load(options.model.family).abstract_inputs(options.config))
    assert pair.linen.rngs == pair.nnx.rngs == streams


def test_every_word_is_read() -> None:
    words = read(
        [
            "model=deepseek2-16b",
            "size=tiny",
            "rules=shard-exp-on-fsdp",
            "mesh=fsdp:2,context:2",
            "shard_mode=auto",
            "optimizer=adamw",
            "seed=3",
            "steps=2",
            "devices=8",
            "num_decoder_layers=2",
            "rope_factor=8",
            "rope_interleave=false",
            "mlp_activations=gelu,linear",
            "dtype=bfloat16",
        ]
    )
    options = model_options(words)
    assert (options.devices, options.seed, options.steps) == (8, 3, 2)
    assert options.mesh == {
        "data": 1,
        "stage": 1,
        "fsdp": 2,
        "fsdp_transpose": 1,
        "context": 2,
        "expert": 1,
    }
    config = options.config
    assert (config.num_decoder_layers, config.rope_factor, config.rope_interleave) == (2, 8, False)
    assert (config.mlp_activations, config.dtype) == (("gelu", "linear"), "bfloat16")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["model=deepsek"], "model=deepsek: unknown model; did you mean deepseek?"),
        (["model=llama-7b"], "model=llama-7b: unknown model; did you mean llama2-7b?"),
        (["model=gemma3-12b", "num_decoder_layers=5"],
         "num_decoder_layers: expected a multiple of global_every = 3, found 5"),
        (["model=llama2-7b", "num_kv_heads=3"],
         "num_kv_heads: expected a divisor of num_query_heads = 4, found 3"),
        (["model=llama2-7b", "mesh=stage:3", "num_decoder_layers=4"],
         "num_pipeline_repeats: expected so many times 3 stages * 1 layers as make 4 pipelined"),
        (["model=llama2-7b", "mesh=stage:2", "num_pipeline_microbatches=3"],
         "num_pipeline_microbatches: expected a multiple of 2 stages, at least 2, found 3"),
        (["model=llama2-7b", "mesh=stage:2", "num_pipeline_microbatches=2",
          "pipeline_delay_activation_forwarding=true"],
         "num_pipeline_microbatches: expected a multiple of 2 stages, at least 4, found 2"),
        (["model=llama2-7b", "mesh=stage:2", "batch_size=7"],
         "batch_size: expected a multiple of 2 micro-batches, found 7"),
        (["model=llama2-7b", "mesh=stage:2", "pipeline_parallel_layers=5"],
         "pipeline_parallel_layers: expected -1, or 1 to num_decoder_layers = 4, found 5"),
        (["model=llama2-7b", "mesh=stage:4", "pipeline_fsdp_ag_per_repeat=true"],
         "pipeline_fsdp_ag_per_repeat: expected false with one repeat, and beside"),
        (["model=llama2-7b", "mesh=stage:2", "ici_pipeline_parallelism=4"],
         "ici_pipeline_parallelism=4: mesh=stage:2 has stage:2"),
        (["model=llama2-7b", "ici_pipeline_parallelism=2"],
         "ici_pipeline_parallelism=2: mesh=fsdp:4,expert:2 has stage:1"),
        (["model=gemma3-12b", "mesh=stage:2"], "decoder_block: expected llama in a pipeline"),
        (["model=deepseek", "mseh=fsdp:8"], "unknown key 'mseh'; did you mean mesh?"),
        (["model=deepseek", "num_expert=8"], "unknown key 'num_expert'; did you mean num_experts?"),
        (["model=deepseek", "case=a.py"], "model=deepseek and case=a.py exclude each other"),
        (["model=deepseek", "size=huge"], "size=huge: expected tiny or full"),
        (["model=deepseek", "shard_mode=manual"], "shard_mode=manual: expected auto or explicit"),
        (["model=deepseek", "zero1=yes"], "zero1=yes: expected true or false"),
        (["model=deepseek", "gradient_accumulation_steps=0"],
         "gradient_accumulation_steps=0: expected a whole number of at least 1"),
        (["model=deepseek", "gradient_accumulation_steps=3", "batch_size=16"],
         "gradient_accumulation_steps=3: expected a divisor of batch_size=16"),
        (["model=deepseek", "gradient_accumulation_steps=2", "batch_size=8"],
         "batch_size=8: expected a multiple of 16: 2 micro-batches on 8 devices"),
        (["model=llama2-7b", "mesh=stage:4,fsdp:2", "gradient_accumulation_steps=4", "batch_size=8"],
         "batch_size: expected a multiple of 4 micro-batches, found 2"),
        (["model=deepseek", "compile=yes"], "compile=yes: expected true or false"),
        (["model=deepseek", "remat_policy=some"], "remat_policy: expected none or minimal or"),
        (["model=deepseek", "mtp_num_layers=-1"], "mtp_num_layers: expected 0 or more"),
        (["model=deepseek", "optimizer=sgd"], "optimizer=sgd: expected adamw or muon or plateau"),
        (["model=deepseek", "rules=pure-fspd"], "rules=pure-fspd: "),
        (["model=deepseek", "rules=no/such.yml"], "rules=no/such.yml: "),
        (["model=deepseek", "mesh=fdsp:8"],
         "mesh=fdsp:8: rules=default have no mesh axis 'fdsp'; did you mean fsdp?"),
        (["model=deepseek", "mesh=fsdp"], "mesh=fsdp: expected axis:size[,axis:size...]"),
        (["model=deepseek", "devices=4"],
         "mesh=fsdp:4,expert:2 needs 8 devices, devices=4 are given"),
        (["model=deepseek", "seed=-1"], "seed=-1: expected a whole number of at least 0"),
        (["model=deepseek", "emb_dim=wide"], "emb_dim=wide: expected a value of type int"),
        (["model=deepseek", "rope_truncate=yes"], "rope_truncate=yes: expected true or false"),
        (["model=deepseek", "num_experts_per_tok=17"],
         "num_experts_per_tok: expected at most 16, the experts of the chosen groups, found 17"),
        (["model=deepseek", "size=full", "steps=3"],
         "steps=3: nothing has values at size=full: use size=tiny"),
        (["model=deepseek", "compile=true"], "compile=true: expected size=full"),
        (["model=deepseek", "distributed=yes"], "distributed=yes: expected true or false"),
        (["model=deepseek", "distributd=true"],
         "unknown key 'distributd'; did you mean distributed?"),
        (["model=deepseek", "seed=4294967296"], "seed=4294967296: expected at most 4294967295"),
        (["model=deepseek", "mesh=fsdp:100000"],
         "100000 devices are needed, 4096 can be simulated: make the mesh smaller"),
        (["model=deepseek", "normalization_layer_epsilon=nan"],
         "normalization_layer_epsilon: expected a positive number, found nan"),
        (["model=deepseek", "rope_max_timescale=1"], "rope_max_timescale: expected more than 1"),
        (["model=deepseek", "routed_scaling_factor=inf"],
         "routed_scaling_factor: expected a finite number, found inf"),
        (["model=deepseek", "z_loss_weight=-1"], "z_loss_weight: expected 0 or more, found -1.0"),
        (["model=deepseek", "mtp_num_layers=2", "max_target_length=3"],
         "max_target_length: expected at least 4: the tokens that losses look at, found 3"),
        (["model=deepseek", "size=full", "use_batch_split_schedule=true", "mesh=fsdp:8",
          "batch_size=24"],
         "batch_size=24: expected a multiple of 16: 2 micro-batches on 8 devices"),
        (["model=gemma3-12b", "sliding_window_size=0"],
         "sliding_window_size: expected at least 1, found 0"),
        (["model=gemma3-12b", "attn_logits_soft_cap=-1"],
         "attn_logits_soft_cap: expected 0 or more, found -1.0"),
        (["model=llama2-7b", "dropout_rate=1"],
         "dropout_rate: expected 0 or more and less than 1, found 1.0"),
        (["model=llama2-7b", "dropout_rate=nan"],
         "dropout_rate: expected 0 or more and less than 1, found nan"),
        (["model=llama2-7b", "mesh=stage:2", "dropout_rate=0.1",
          "pipeline_fsdp_ag_per_repeat=true"],
         "dropout_rate: expected 0 beside pipeline_fsdp_ag_per_repeat, found 0.1"),
        (["model=gemma3-12b", "rope_linear_scaling_factor=0"],
         "rope_linear_scaling_factor: expected a positive number, found 0.0"),
        (["model=deepseek", "report=no/dir/r.json"],
         "report=no/dir/r.json: expected a file in an existing directory"),
        (["model=deepseek", "model=deepseek"], "model= is given twice"),
        (["model=deepseek", "steps"], "steps: expected steps=VALUE"),
    ],
)  # fmt: skip
def test_a_bad_word_is_one_line_and_exit_code_2(words: list[str], line: str) -> None:
    outcome = run(words)
    assert outcome.exit_code == 2
    (found,) = outcome.lines
    assert found.startswith(f"parity: {line}")
    assert "\n" not in found


def test_rules_of_a_file_that_name_an_absent_axis_are_one_line(tmp_path: Path) -> None:
    file = tmp_path / "rules.yml"
    file.write_text("mesh_axes: [fsdp]\nlogical_axis_rules: [[embed, fsdpp]]\n")
    outcome = run(["model=deepseek", f"rules={file}", "mesh=fsdp:8"])
    assert outcome.exit_code == 2
    (found,) = outcome.lines
    assert "fsdpp" in found
    assert "\n" not in found
