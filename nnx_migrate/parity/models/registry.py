"""The built-in models by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class BuiltInModel:
    """A model of a family below the fixtures: one figure file per size.

    ``rules``, ``shard_mode`` and ``full_mesh`` are what is used unless the command line says otherwise.

    A family is a package with ``Config``, ``read(figures)``, ``inputs(config, seed)`` and
    ``abstract_inputs(config)``, and with the packages ``linen``, ``nnx`` and ``lazy`` of the same
    modules: ``model.Transformer(config)``, ``objective.loss(outputs, *inputs, config=config)`` and
    ``muon.dimension_numbers(params)``.
    """

    name: str
    family: str
    figures: Mapping[str, str]
    rules: str = "default"
    shard_mode: str = "auto"
    full_mesh: str = "fsdp:64,expert:8"  # at full size


MODELS: Mapping[str, BuiltInModel] = {
    model.name: model
    for model in (
        BuiltInModel(
            "deepseek2-16b", "deepseek", {"tiny": "deepseek2-16b-tiny", "full": "deepseek2-16b"}
        ),
        BuiltInModel(
            "deepseek3-671b", "deepseek", {"tiny": "deepseek3-671b-tiny", "full": "deepseek3-671b"}
        ),
        BuiltInModel(
            "deepseek3-671b-batchsplit",
            "deepseek",
            {"tiny": "deepseek3-671b-batchsplit-tiny", "full": "deepseek3-671b-batchsplit"},
            rules="deepseek3-671b-batchsplit",
            shard_mode="explicit",
        ),
        *(
            BuiltInModel(name, "gqa", {"tiny": f"{name}-tiny", "full": name})
            for name in ("llama2-7b", "qwen3-0.6b")
        ),
        # Its embedding has 3840 features, which 512 devices do not divide.
        BuiltInModel(
            "gemma3-12b",
            "gqa",
            {"tiny": "gemma3-12b-tiny", "full": "gemma3-12b"},
            full_mesh="fsdp:64",
        ),
    )
}
ALIASES = {"deepseek": "deepseek2-16b"}
NAMES = (*ALIASES, *MODELS)
