"""Models in which one line of the NNX side is wrong are different, whatever the size."""

from __future__ import annotations

import pytest

from tests.parity.models.mutations import parity

LLAMA = ("model=llama2-7b", "size=full")
DEEPSEEK = ("model=deepseek3-671b", "size=full", "mtp_num_layers=1")
FULL = {
    "initial values of another scale": (
        *("gqa/nnx/linears.py", '1.0, "fan_in"', '2.0, "fan_in"'),
        LLAMA,
    ),
    "the scale of the loss": (
        *("gqa/nnx/objective.py", "jnp.sum(per_token * counts)", "2 * jnp.sum(per_token * counts)"),
        LLAMA,
    ),
    "a lost reshard": (
        *("gqa/nnx/layers.py", "constrain(", "(lambda x, _: x)("),
        (*LLAMA, "shard_mode=explicit"),
    ),
    "a stopped gradient": (
        "deepseek/nnx/mtp.py",
        *("self.projection(both)", "jax.lax.stop_gradient(self.projection(both))"),
        DEEPSEEK,
    ),
    "a mask off by one": (
        *("deepseek/nnx/attention.py", "dtype=bool))", "dtype=bool), 1)"),
        DEEPSEEK,
    ),
    "a lost constraint": (
        "deepseek/nnx/mtp.py",
        *("constrain(jnp.concatenate([known, coming], axis=-1), RESIDUAL)",
          "jnp.concatenate([known, coming], axis=-1)"),
        DEEPSEEK,
    ),
    "a lost checkpoint policy": (
        *("deepseek/nnx/model.py", "policy=saved", "policy=None"),
        DEEPSEEK,
    ),
}  # fmt: skip
LOST = "Transformer/mtp_layer_1 (placement.py:18 in constrain from mtp.py:33"
TINY = {
    "a lost constraint": (
        *FULL["a lost constraint"][:3],
        f"constraint P(fsdp+expert) on float32[8,16,128] lost: {LOST}",
    ),
    "a lost checkpoint policy": (
        *FULL["a lost checkpoint policy"][:3],
        ("remat with policy SaveOnlyTheseNames(saveable_names=frozenset({'decoder_layer_input'})), "
        "prevent_cse=False lost: Transformer/decoder"),
    ),
    "a condition that no input reaches": (
        *("deepseek/nnx/mtp.py", "self.projection(both)"),
        "jnp.where((x := self.projection(both)) > 100, 0, x)",
        "required to be the same, by published rules at most; not the same program: ",
    ),
}  # fmt: skip
SLOW = {*FULL} - {"initial values of another scale", "the scale of the loss"}


@pytest.mark.parametrize(
    "fault",
    [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in FULL],
)
def test_a_fault_at_full_size_is_another_program(fault: str) -> None:
    *change, words = FULL[fault]
    done = parity(*change, *words)
    assert done.returncode == 1, done.stdout + done.stderr
    first, *lines = done.stdout.splitlines()
    assert ": different (" in first
    assert [line.split()[1] for line in lines if line.startswith("  fail ")] == ["program:"]


UNTRACED = {
    "a wrong size": (
        *("gqa/nnx/layers.py", "cfg.mlp_dim, in_features=self", "cfg.mlp_dim, in_features=1 + self"),
        "fail specs: NNX: ValueError: 0/decoder/layers/mlp/wi_0/kernel: expected a size divisible by",
    ),
    "a model that cannot be built": (
        *("gqa/nnx/layers.py", "in_features=self.config.emb_dim", "in_features=cfg.no_such"),
        "fail stacks: NNX construct: AttributeError: ",
    ),
    "a stack axis at 0": (
        *("gqa/nnx/model.py",
          'remat(layer, prevent_cse=False, policy=saved),\n                variable_axes={"params": 1}',
          'remat(layer, prevent_cse=False, policy=saved),\n                variable_axes={"params": 0}'),
        "fail shapes: ",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(name, marks=() if name == "a wrong size" else pytest.mark.slow)
        for name in UNTRACED
    ],
)
def test_a_model_that_cannot_be_traced_at_full_size_is_different(fault: str) -> None:
    *change, line = UNTRACED[fault]
    done = parity(*change, "model=llama2-7b", "size=full", "ici_pipeline_parallelism=1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert ": different (" in done.stdout.splitlines()[0]
    assert f"  {line}" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("fault", TINY)
def test_a_fault_that_numbers_do_not_show_fails_the_program(fault: str) -> None:
    *change, line = TINY[fault]
    done = parity(*change, "model=deepseek", "mtp_num_layers=1", "remat_policy=save_input")
    assert done.returncode == 1, done.stdout + done.stderr
    failures = [one for one in done.stdout.splitlines() if one.startswith("  fail ")]
    assert [one.startswith(f"  fail program: {line}") for one in failures] == [True]


MUON = {
    "a matrix's axes": (
        *("gqa/nnx/muon.py", "MuonDimensionNumbers((0, -2), (-1,))"),
        "MuonDimensionNumbers((0,), (-1,))",
    ),
    "what AdamW is left": (
        *("gqa/nnx/muon.py", 'NORMS_AND_TABLES or "logits_dense" in modules'),
        "NORMS_AND_TABLES",
    ),
}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(name, marks=() if name == "a matrix's axes" else pytest.mark.slow)
        for name in MUON
    ],
)
def test_a_fault_of_the_optimizer_alone_is_another_program_of_a_step(fault: str) -> None:
    done = parity(*MUON[fault], *LLAMA, "optimizer=muon")
    assert done.returncode == 1, done.stdout + done.stderr
    assert (
        "program: not the same program: step: " in done.stdout or "step: there is no" in done.stdout
    )


@pytest.mark.slow
def test_a_fault_in_numbers_is_located_on_a_mesh_of_more_devices_than_cores() -> None:
    """All outputs of submodules at once: reductions that wait for each other must not starve."""
    fault = ("gqa/nnx/normalizations.py", "mean_square + self.epsilon", "mean_square + 1e-3")
    done = parity(*fault, "model=llama2-7b")
    assert done.returncode == 1, done.stdout + done.stderr
    place = "decoder/layers/pre_self_attention_layer_norm"
    assert f"  first difference at {place}: " in done.stdout
    assert f"not the same program: forward: from Transformer/{place} (" in done.stdout
