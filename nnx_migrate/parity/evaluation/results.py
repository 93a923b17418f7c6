"""What one side of a case yields when it is evaluated alone: plain data, and its files.

The two sides never see each other; a comparison takes two of these. ``save`` and ``load`` carry
one across processes without loss (any dtype, bfloat16 and PRNG key data included).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from nnx_migrate.parity.evaluation.program_features import ProgramFeature
from nnx_migrate.parity.evaluation.shardings import ArrayLayout, Layouts
from nnx_migrate.parity.modes import Mode
from nnx_migrate.parity.values import Array, Arrays, ShapeDtype

Stack = Literal["linen", "nnx"]
_FORMAT = 5


@dataclass(frozen=True)
class Numbers:
    """What one run computed, by path; ``structure`` is the container types of the outputs.

    ``plain`` are the texts of numbers, strings and other values of Python among the outputs.
    ``constant_collections`` are the ``collections`` that came out as they went in, ``stream_names`` the random streams
    that the run drew from. ``input_gradients`` are those of the loss by the inputs. ``keys`` is how
    many different keys the call makes random numbers of under real ones, None where they were not
    counted, and ``repeated_keys`` how many of them one more call of the same NNX model makes them of again.
    """

    structure: str = ""
    outputs: Arrays = field(default_factory=dict)
    loss: Arrays = field(default_factory=dict)
    gradients: Arrays = field(default_factory=dict)
    collections: Arrays = field(default_factory=dict)
    plain: dict[str, str] = field(default_factory=dict)
    constant_collections: tuple[str, ...] = ()
    stream_names: tuple[str, ...] = ()
    input_gradients: Arrays = field(default_factory=dict)
    keys: int | None = None
    repeated_keys: int = 0


@dataclass(frozen=True)
class SubmoduleOutput:
    """The output of one call of one submodule; ``path`` is its scope path, "" for the model."""

    path: str
    call: int
    outputs: Arrays


@dataclass(frozen=True)
class ModeRun:
    """What one side gave in one more mode of its call; the fields are those of ``SideResult``.

    ``missing`` says why this side has no such mode.
    """

    mode: Mode
    missing: str = ""
    first: Numbers = Numbers()
    second: Numbers = Numbers()
    programs: dict[str, str] = field(default_factory=dict)
    debug_programs: dict[str, str] = field(default_factory=dict)
    features: dict[str, tuple[ProgramFeature, ...]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    skip_reasons: dict[str, str] = field(default_factory=dict)
    submodules: tuple[SubmoduleOutput, ...] = ()


@dataclass(frozen=True)
class SideResult:
    """Everything known of one side. Paths are Linen's, starting with the collection.

    Attributes:
      problems: findings that this side did not run the stack it should.
      bridges: the Linen submodules behind ``ToNNX``: ``inner (Dense)``.
      names: the axis names of variables that have any.
      nnx_only: NNX variables without a Linen counterpart by design: ``rngs/params/count``.
      shared_submodules: those held in several places, which ``nnx.state`` lists elsewhere.
      duplicates: variables that got the same random initial values under real keys:
        ``params/b/kernel = params/a/kernel``.
      draws, repeated_draws: how many keys NNX drew at construction, and how many of them again.
      first, second: the same run under two constant keys.
      others: runs under the first key on other inputs, by what these are.
      writes: paths of the variables that the call changes: ``cache/index``.
      programs: canonical texts; ``debug_programs`` are those with locations, ``features`` what numbers
        do not show of each.
      layouts: how the training state lies on the mesh; ``layouts_after`` how after a step.
      losses: those of the steps.
      state: its arrays after the last step, where the case keeps them.
      memory, collectives: bytes of one device and numbers of collective operations, of the compiled loss
        and its gradients.
      plain_arrays: attributes that keep arrays which are no variables, on a side without values.
      control: how this side differs from itself.
      errors: stages that raised.
      skip_reasons: why stages do not apply: ``{"specs": "the case has no mesh"}``.
      eager_reason: why the side ran operation by operation; "" for one that was compiled.
      unused_map_entries: entries of the case's ``path_map``, Linen to NNX, that lead to nothing of the
        module; ``attributes`` is what it has.
      sown: ``collection/name`` of what a call would sow, asked for or not.
      modes: further runs of the call.
      fixed_arguments: what of the call had one value only, with the reason: ``{"train=False": ...}``.
    """

    stack: Stack
    model: str
    problems: tuple[str, ...] = ()
    bridges: tuple[str, ...] = ()
    shapes: dict[str, ShapeDtype] = field(default_factory=dict)
    names: dict[str, tuple[str | None, ...]] = field(default_factory=dict)
    nnx_only: tuple[str, ...] = ()
    shared_submodules: tuple[str, ...] = ()
    init_values: Arrays = field(default_factory=dict)
    duplicates: tuple[str, ...] = ()
    draws: int = 0
    repeated_draws: int = 0
    first: Numbers = Numbers()
    second: Numbers = Numbers()
    others: dict[str, Numbers] = field(default_factory=dict)
    writes: tuple[str, ...] = ()
    programs: dict[str, str] = field(default_factory=dict)
    debug_programs: dict[str, str] = field(default_factory=dict)
    features: dict[str, tuple[ProgramFeature, ...]] = field(default_factory=dict)
    layouts: Layouts = field(default_factory=dict)
    layouts_after: Layouts = field(default_factory=dict)
    losses: Arrays = field(default_factory=dict)
    state: Arrays = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    collectives: dict[str, int] = field(default_factory=dict)
    plain_arrays: tuple[str, ...] = ()
    control: tuple[str, ...] = ()
    control_leaves: int = 0
    submodules: tuple[SubmoduleOutput, ...] = ()
    errors: dict[str, str] = field(default_factory=dict)
    skip_reasons: dict[str, str] = field(default_factory=dict)
    eager_reason: str = ""
    unused_map_entries: dict[str, str] = field(default_factory=dict)
    attributes: tuple[str, ...] = ()
    sown: tuple[str, ...] = ()
    modes: tuple[ModeRun, ...] = ()
    fixed_arguments: dict[str, str] = field(default_factory=dict)


def save(side: SideResult, directory: Path) -> None:
    """Write a side into an existing or new directory: ``side.json`` and ``arrays.npz``."""
    directory.mkdir(parents=True, exist_ok=True)
    arrays: list[Array] = []
    document = {"format": _FORMAT, "side": _encode(side, arrays)}
    # Raw bytes: npz would need pickling for the dtypes numpy does not know itself.
    raw = {f"a{i}": np.frombuffer(value.tobytes(), np.uint8) for i, value in enumerate(arrays)}
    with (directory / "arrays.npz").open("wb") as file:
        np.savez(file, **raw)  # type: ignore[arg-type]
    (directory / "side.json").write_text(json.dumps(document), encoding="utf-8")


def load(directory: Path) -> SideResult:
    """Read what ``save`` wrote. Raises OSError or ValueError when it is not there or not ours."""
    document = json.loads((directory / "side.json").read_text(encoding="utf-8"))
    if document.get("format") != _FORMAT:
        raise ValueError(
            f"{directory / 'side.json'}: expected format {_FORMAT}, found "
            f"{document.get('format')!r}: it was written by another version; run the side again"
        )
    with np.load(directory / "arrays.npz") as raw:
        return _decode_side(document["side"], dict(raw))


def _encode(value: Any, arrays: list[Array]) -> Any:
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return [len(arrays) - 1, list(value.shape), str(value.dtype)]
    if dataclasses.is_dataclass(value):
        names = [entry.name for entry in dataclasses.fields(value)]
        return {name: _encode(getattr(value, name), arrays) for name in names}
    if isinstance(value, Mapping):
        return {name: _encode(entry, arrays) for name, entry in value.items()}
    if isinstance(value, tuple):
        return [_encode(entry, arrays) for entry in value]
    return value


def _decode_side(data: dict[str, Any], raw: Mapping[str, Array]) -> SideResult:
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
    }
    fields["names"] = {path: _as_tuples(one) for path, one in data["names"].items()}
    fields["shapes"] = {
        path: ShapeDtype(tuple(spec["shape"]), spec["dtype"])
        for path, spec in data["shapes"].items()
    }
    for name in ("init_values", "losses", "state"):
        fields[name] = _decode_arrays(data[name], raw)
    for name in ("layouts", "layouts_after"):
        fields[name] = {path: _decode_layout(one) for path, one in data[name].items()}
    others = {how: _decode_numbers(one, raw) for how, one in data["others"].items()}
    fields |= {**_decode_run(data, raw), "others": others}
    fields["modes"] = tuple(
        ModeRun(_decode_mode(one["mode"]), one["missing"], **_decode_run(one, raw), **_texts(one))
        for one in data["modes"]
    )
    return SideResult(**fields)


def _decode_mode(data: Mapping[str, Any]) -> Mode:
    return Mode(**{name: _as_tuples(value) for name, value in data.items()})


def _texts(data: dict[str, Any]) -> dict[str, Any]:
    return {name: data[name] for name in ("programs", "debug_programs", "errors", "skip_reasons")}


def _decode_run(data: dict[str, Any], raw: Mapping[str, Array]) -> dict[str, Any]:
    """What a side and one of its modes have alike, as far as it holds more than texts."""
    submodules = (
        SubmoduleOutput(one["path"], one["call"], _decode_arrays(one["outputs"], raw))
        for one in data["submodules"]
    )
    return {
        **{name: _decode_numbers(data[name], raw) for name in ("first", "second")},
        "features": {
            name: tuple(
                ProgramFeature(**{key: _as_tuples(value) for key, value in one.items()})
                for one in found
            )
            for name, found in data["features"].items()
        },
        "submodules": tuple(submodules),
    }


def _decode_numbers(data: dict[str, Any], raw: Mapping[str, Array]) -> Numbers:
    arrays = ("outputs", "loss", "gradients", "input_gradients", "collections")
    fields: dict[str, Any] = {
        name: _decode_arrays(value, raw) if name in arrays else _as_tuples(value)
        for name, value in data.items()
    }
    return Numbers(**fields)


def _decode_layout(data: Mapping[str, Any]) -> ArrayLayout:
    return ArrayLayout(**{name: _as_tuples(value) for name, value in data.items()})


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _decode_arrays(data: Mapping[str, Any], raw: Mapping[str, Array]) -> Arrays:
    return {
        path: np.frombuffer(raw[f"a{index}"].tobytes(), jnp.dtype(dtype)).reshape(shape)
        for path, (index, shape, dtype) in data.items()
    }
