"""Logical axis rules from files: the project's own by name, and anyone's by path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from jax.sharding import PartitionSpec

from nnx_migrate.sharding.resolve import mesh_axes
from nnx_migrate.sharding.rules_file import AxisRulesError, RuleFinding, parse, text_of


@dataclass(frozen=True, slots=True)
class AxisRules:
    """Mesh axes and the logical axis rules that use them.

    Attributes:
      name: the project's name for them, or the path they came from.
      mesh_axes: the axes of the mesh, in its order.
      data_sharding: entries of the spec of a batch of input data, or None if the file has none.
      logical_axis_rules: pairs (name, None | mesh axis | tuple of mesh axes), in order of
        precedence; what :func:`resolve_spec` takes.
      context_sharding: the mesh axis that shards the sequence, if the file says so.
      findings: remarks that do not stop the file from being used.
    """

    name: str
    mesh_axes: tuple[str, ...]
    data_sharding: tuple[Any, ...] | None
    logical_axis_rules: tuple[tuple[str, Any], ...]
    context_sharding: str | None = None
    findings: tuple[RuleFinding, ...] = field(default=(), compare=False)

    @property
    def data_spec(self) -> PartitionSpec | None:
        """The spec of a batch of input data."""
        return None if self.data_sharding is None else PartitionSpec(*self.data_sharding)

    @property
    def context_axes(self) -> tuple[str, ...]:
        """Mesh axes that shard the sequence: those of the first rule of ``activation_length``.

        Only without such a rule does ``context_sharding`` count: MaxText's loader reads the rule
        and not the key (a difference between the two is among the findings).
        """
        axes = first_axes(self.logical_axis_rules, "activation_length")
        return axes if axes is not None else tuple(mesh_axes(self.context_sharding))

    @property
    def expert_axes(self) -> tuple[str, ...]:
        """Mesh axes that shard the experts: those of the first rule of ``exp``."""
        return first_axes(self.logical_axis_rules, "exp") or ()


def axis_rule_names() -> tuple[str, ...]:
    """Names of the rules that come with the project, sorted."""
    own = (item.name for item in _own().iterdir())
    return tuple(sorted(name.removesuffix(".yml") for name in own if name.endswith(".yml")))


def load_axis_rules(
    source: str | Path, *, model_names: Iterable[str] | None = None, strict: bool = False
) -> AxisRules:
    """Axis rules from a YAML file, or the project's own by name.

    The keys are ``mesh_axes`` (list), ``data_sharding`` (list of entries, may be left out),
    ``logical_axis_rules`` (list of pairs) and ``context_sharding`` (a mesh axis, may be left out).

    Args:
      source: a path, or one of :func:`axis_rule_names`. A string with a ``/`` or an ending
        ``.yml`` or ``.yaml`` is a path.
      model_names: the logical names that the model gives its arrays and activations. With them,
        rules that none of them uses and names without a rule are among the findings.
      strict: every finding is an error.

    Raises:
      AxisRulesError: every fault with its line: unknown, missing or repeated keys, values of the
        wrong kind, an axis twice in one list, an axis that is neither in ``mesh_axes`` nor
        customary (a customary one, such as ``tensor``, has no effect and is a finding).
      FileNotFoundError: no such file, or no rules of that name.
    """
    path = Path(source)
    if isinstance(source, Path) or path.suffix in (".yml", ".yaml") or "/" in source:
        text, name = text_of(path.read_bytes(), str(source)), str(source)
    else:
        text, name = _own_text(source), source
    content = parse(text, name)
    findings = [*content.findings]
    if model_names is not None:
        findings += _unused_names(content.rules, content.rule_lines, {*model_names}, name)
    rules = AxisRules(
        name, content.mesh_axes, content.data_sharding, content.rules, content.context_sharding
    )
    findings += _contradiction(rules, content.context_line)
    if strict and findings:
        raise AxisRulesError(sorted(findings, key=lambda one: one.line))
    return replace(rules, findings=tuple(findings))


def merge_rules(
    base: Iterable[tuple[str, Any]], later: Iterable[tuple[str, Any]], *, override: bool = False
) -> tuple[tuple[str, Any], ...]:
    """Rules of one configuration after those of another, as MaxText merges them.

    All rules of a name that ``later`` mentions leave ``base``, and the rules of ``later`` come at
    the end, so they also lose precedence. With ``override`` only ``later`` remains
    (``override_logical_axis_rules``).
    """
    later = tuple(later)
    if override:
        return later
    named = {name for name, _ in later}
    return (*(rule for rule in base if rule[0] not in named), *later)


def first_axes(rules: Iterable[tuple[str, Any]], name: str) -> tuple[str, ...] | None:
    """Mesh axes of the first rule of ``name``; None without one."""
    return next((tuple(mesh_axes(axes)) for rule, axes in rules if rule == name), None)


def _own() -> Any:
    return files("nnx_migrate.sharding") / "rules"


def _own_text(name: str) -> str:
    if name not in axis_rule_names():
        raise FileNotFoundError(
            f"axis rules: expected a file or one of {', '.join(axis_rule_names())}, found {name!r}"
        )
    return str((_own() / f"{name}.yml").read_text(encoding="utf-8"))


def _unused_names(
    rules: tuple[tuple[str, Any], ...], lines: tuple[int, ...], names: set[str], source: str
) -> list[RuleFinding]:
    rule_names = {name for name, _ in rules}
    return [
        RuleFinding(source, line, False, f"the rule of {name!r} is for a name the model never uses")
        for line, (name, _) in zip(lines, rules, strict=True)
        if name not in names
    ] + [
        RuleFinding(source, 0, False, f"no rule for {name!r}: its dimensions are not sharded")
        for name in sorted(names - rule_names)
    ]


def _contradiction(rules: AxisRules, line: int) -> list[RuleFinding]:
    if rules.context_sharding is None or rules.context_sharding in rules.context_axes:
        return []
    text = (
        f"context_sharding is {rules.context_sharding!r}, but the rule of 'activation_length' "
        f"gives {rules.context_axes!r}, and the rule counts"
    )
    return [RuleFinding(rules.name, line, False, text)]
