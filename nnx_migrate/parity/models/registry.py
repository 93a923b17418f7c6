"""The built-in models by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class BuiltInModel:
    """A model of a family below the fixtures: one figure file per size.

    ``rules`` and ``shard_mode`` are what is used unless the command line says otherwise.

    A family is a package with ``Config``, ``read(figures)``, ``inputs(config, seed)`` and
    ``abstract_inputs(config)``, a module ``muon`` with ``dimension_numbers(params)``, and with
    the packages ``linen``, ``nnx`` and ``lazy`` of the same modules: ``model.Transformer(config)`` and
    ``objective.loss(outputs, *inputs, config=config)``.
    """

    name: str
    family: str
    figures: Mapping[str, str]
    rules: str = "default"
    shard_mode: str = "auto"


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
            for name in ("gemma3-12b", "llama2-7b", "qwen3-0.6b")
        ),
    )
}
ALIASES = {"deepseek": "deepseek2-16b"}
NAMES = (*ALIASES, *MODELS)
