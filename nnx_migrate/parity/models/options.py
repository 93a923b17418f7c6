"""The words of ``parity model=NAME``, read and checked against the model and its rules."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from nnx_migrate.parity.files.case_file import nearest
from nnx_migrate.parity.models.load import load
from nnx_migrate.parity.models.optimizers import OPTIMIZERS
from nnx_migrate.parity.models.registry import ALIASES, MODELS, NAMES, BuiltInModel
from nnx_migrate.parity.words import BadWord, choice, mesh_sizes, number, require_keys
from nnx_migrate.sharding import AxisRules, AxisRulesError, load_axis_rules

KEYS = (
    "model",
    "size",
    "form",
    "rules",
    "mesh",
    "shard_mode",
    "seed",
    "steps",
    "optimizer",
    "zero1",
    "gradient_accumulation_steps",
    "devices",
    "compile",
    "distributed",
    "report",
    "certificate",
)
SIZES = ("tiny", "full")
FORMS = ("explicit", "lazy")
# Sequences per device where the batch is not told: what a full-size model trains on.
PER_DEVICE_BATCH = 4
DEFAULT_MESH = "fsdp:4,expert:2"
# The config's field that says how many stages a pipeline has: as many as the mesh.
STAGES = "ici_pipeline_parallelism"
ZERO1_MESH = "data:2,fsdp:2,expert:2"


LARGEST = 2**31 - 1  # what an index of an array may be


@dataclass(frozen=True)
class ModelOptions:
    """One run of a built-in model. ``mesh`` has every axis of the rules, in their order.

    With ``keeps_state`` the training state after the last step is kept.
    """

    model: BuiltInModel
    size: str
    config: Any
    rules: AxisRules
    mesh: Mapping[str, int]
    devices: int
    seed: int
    steps: int
    shard_mode: Literal["auto", "explicit"] = "auto"
    optimizer: str = "adamw"
    zero1: bool = False
    gradient_accumulation_steps: int = 1
    compile: bool = False
    distributed: bool = False
    form: str = "explicit"
    keeps_state: bool = False

    def describe(self) -> str:
        """What was compared, in a few words."""
        used = ",".join(f"{axis}:{size}" for axis, size in self.mesh.items() if size > 1)
        parts = self.gradient_accumulation_steps
        words = [
            f"{self.model.name} size={self.size} rules={self.rules.name}",
            f"mesh={used or 'one device'}",
            *([] if self.form == FORMS[0] else [f"form={self.form}"]),
            *([] if self.shard_mode == "auto" else [f"shard_mode={self.shard_mode}"]),
            *([] if self.optimizer == "adamw" else [f"optimizer={self.optimizer}"]),
            *(["zero1=true"] if self.zero1 else []),
            *([f"gradient_accumulation_steps={parts}"] if parts > 1 else []),
        ]
        return " ".join(words)


def model_options(values: Mapping[str, str]) -> ModelOptions:
    """Read the words. Raises BadWord for the first word that cannot be used."""
    if "case" in values:
        raise BadWord(
            f"model={values['model']} and case={values['case']} exclude each other: a built-in model, or a "
            "case of your own"
        )
    model = _model(values["model"])
    family = load(model.family)
    hints = typing.get_type_hints(family.Config)
    fields = {one.name: hints[one.name] for one in dataclasses.fields(family.Config)}
    require_keys(tuple(values), (*KEYS, *fields))
    size = choice(values, "size", SIZES) or SIZES[0]
    shard_mode_word = choice(values, "shard_mode", ("auto", "explicit")) or model.shard_mode
    shard_mode: Literal["auto", "explicit"] = (
        "explicit" if shard_mode_word == "explicit" else "auto"
    )
    optimizer = choice(values, "optimizer", OPTIMIZERS) or OPTIMIZERS[0]
    _require_size(values, size)
    zero1 = choice(values, "zero1", ("true", "false")) == "true"
    rules = _rules(values.get("rules", model.rules))
    default = model.full_mesh if size == "full" else ZERO1_MESH if zero1 else DEFAULT_MESH
    text = values.get("mesh", default)
    mesh = _mesh(text, rules)
    if zero1 and "data" not in mesh:
        raise BadWord(f"zero1=true: rules={rules.name} have no mesh axis 'data'")
    changes = {key: _value(key, values[key], kind) for key, kind in fields.items() if key in values}
    if STAGES in fields:
        _require_stages(changes.setdefault(STAGES, mesh.get("stage", 1)), mesh, text)
    if size == "full":
        changes.setdefault("batch_size", PER_DEVICE_BATCH * math.prod(mesh.values()))
    step_count = number(values, "gradient_accumulation_steps", 1) or 1
    figures = {**family.read(model.figures[size]), **changes}
    config = _config(family.Config, figures, step_count, "batch_size" in values)
    return ModelOptions(
        model=model,
        size=size,
        config=config,
        rules=rules,
        mesh=mesh,
        devices=_devices(values, mesh, text),
        seed=number(values, "seed", 0) or 0,
        steps=number(values, "steps", 0) or 0,
        shard_mode=shard_mode,
        optimizer=optimizer,
        zero1=zero1,
        gradient_accumulation_steps=step_count,
        compile=choice(values, "compile", ("true", "false")) == "true",
        distributed=choice(values, "distributed", ("true", "false")) == "true",
        form=choice(values, "form", FORMS) or FORMS[0],
    )


def _model(name: str) -> BuiltInModel:
    if name not in NAMES:
        raise BadWord(f"model={name}: unknown model{nearest(name, NAMES)}")
    return MODELS[ALIASES.get(name, name)]


def _require_size(values: Mapping[str, str], size: str) -> None:
    """Refuse what would say nothing at this size."""
    if size == "full" and values.get("steps", "0") != "0":
        raise BadWord(f"steps={values['steps']}: nothing has values at size=full: use size=tiny")
    if size == "tiny" and values.get("compile") == "true":
        raise BadWord(
            "compile=true: expected size=full; at size=tiny everything is compiled anyway"
        )


def _rules(name: str) -> AxisRules:
    try:
        return load_axis_rules(name)
    except AxisRulesError as error:
        raise BadWord(f"rules={name}: {'; '.join(str(error).splitlines())}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadWord(f"rules={name}: {error}") from error


def _mesh(text: str, rules: AxisRules) -> dict[str, int]:
    sizes = mesh_sizes(text)
    for axis in sizes:
        if axis not in rules.mesh_axes:
            raise BadWord(
                f"mesh={text}: rules={rules.name} have no mesh axis {axis!r}"
                f"{nearest(axis, rules.mesh_axes)}"
            )
    return {axis: sizes.get(axis, 1) for axis in rules.mesh_axes}


def _devices(values: Mapping[str, str], mesh: Mapping[str, int], text: str) -> int:
    device_count = math.prod(mesh.values())
    devices = number(values, "devices", 1) or device_count
    if device_count > devices:
        raise BadWord(f"mesh={text} needs {device_count} devices, devices={devices} are given")
    return devices


def _config(kind: Any, figures: Mapping[str, Any], parts: int, is_whole: bool) -> Any:
    """The config of a batch of so many micro-batches; the figures are those of one unless ``is_whole``."""
    if is_whole:
        batch = figures["batch_size"]
        if batch % parts:
            raise BadWord(
                f"gradient_accumulation_steps={parts}: expected a divisor of batch_size={batch}"
            )
        figures = {**figures, "batch_size": batch // parts}
    try:
        one = kind(**figures)
        return dataclasses.replace(one, batch_size=one.batch_size * parts)
    except ValueError as error:
        raise BadWord(str(error)) from error


def _require_stages(stages: int, mesh: Mapping[str, int], text: str) -> None:
    if stages != mesh.get("stage", 1):
        raise BadWord(f"{STAGES}={stages}: mesh={text} has stage:{mesh.get('stage', 1)}")


def _value(key: str, text: str, kind: Any) -> Any:
    """The value of a config field, read as its annotation says."""
    if kind is bool:
        return {"true": True, "false": False}[choice({key: text}, key, ("true", "false")) or ""]
    if typing.get_origin(kind) is tuple:
        return tuple(text.split(","))
    try:
        value = kind(text)
    except ValueError as error:
        raise BadWord(f"{key}={text}: expected a value of type {kind.__name__}") from error
    if kind is int and abs(value) > LARGEST:
        raise BadWord(f"{key}={text}: expected at most {LARGEST}")
    return value
