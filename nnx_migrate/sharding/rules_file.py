"""Read a file of logical axis rules: YAML with the line of every value, and every fault at once."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

KEYS = ("mesh_axes", "data_sharding", "logical_axis_rules", "context_sharding")
REQUIRED = ("mesh_axes", "logical_axis_rules")

# Mesh axes of the training stacks that write such files. Resolution drops an axis that the mesh
# lacks, so a rule may name one of these in a mesh without it; any other is taken for a misspelling.
CUSTOMARY_AXES = frozenset(
    [
        *("autoregressive", "context", "context_autoregressive", "context_usp_ulysses", "data"),
        *("diloco", "expert", "fsdp", "fsdp_transpose", "stage"),
        *("tensor", "tensor_sequence", "tensor_transpose"),
    ]
)


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """One remark about a file of axis rules.

    Attributes:
      source: the file, or the name of the project's own rules.
      line: from 1; 0 when the remark is about the file as a whole.
      fatal: the file cannot be used as it is.
      text: what was expected, what was found, what to do.
    """

    source: str
    line: int
    fatal: bool
    text: str

    def __str__(self) -> str:
        return (
            f"{self.source}:{self.line}: {self.text}"
            if self.line
            else f"{self.source}: {self.text}"
        )


class AxisRulesError(ValueError):
    """A file of logical axis rules that cannot be used.

    Attributes:
      findings: every fault found, in order of the lines.
    """

    def __init__(self, findings: Iterable[RuleFinding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(map(str, self.findings)))


@dataclass(frozen=True, slots=True)
class RulesContent:
    """The content of a file, with the lines of the rules and of ``context_sharding``."""

    mesh_axes: tuple[str, ...]
    data_sharding: tuple[Any, ...] | None
    rules: tuple[tuple[str, Any], ...]
    rule_lines: tuple[int, ...]
    context_sharding: str | None
    context_line: int
    findings: tuple[RuleFinding, ...]


def text_of(content: bytes, source: str) -> str:
    """The text of a file; ``source`` is what findings call it.

    Raises:
      AxisRulesError: it is not UTF-8.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        text = f"expected UTF-8 text, found the byte {content[error.start]:#04x}"
        raise AxisRulesError([RuleFinding(source, line, True, text)]) from None


def parse(text: str, source: str) -> RulesContent:
    """The content of ``text``; ``source`` is what findings call it.

    Raises:
      AxisRulesError: with every fault that makes the file unusable.
    """
    reader = _Reader(source)
    top = reader.top(text)
    mesh_axes = reader.axes(top.get("mesh_axes"), "mesh_axes")
    data = reader.entries(top.get("data_sharding"))
    rules = list(reader.rules(top.get("logical_axis_rules")))
    context = reader.optional_string(top.get("context_sharding"), "context_sharding")
    context_line = reader.line(top["context_sharding"]) if context else 0
    axis_names = frozenset(mesh_axes)
    for line, axes, what in [
        *((line, axes, f"the rule of {name!r}") for line, name, axes in rules),
        *((line, entry, "data_sharding") for line, entry in data or ()),
        (context_line, context, "context_sharding"),
    ]:
        reader.check_mesh_axes(line, axes, what, axis_names)
    findings = sorted(reader.findings, key=lambda one: one.line)
    if any(one.fatal for one in findings):
        raise AxisRulesError(one for one in findings if one.fatal)
    return RulesContent(
        mesh_axes,
        None if data is None else tuple(entry for _, entry in data),
        tuple((name, axes) for _, name, axes in rules),
        tuple(line for line, _, _ in rules),
        context,
        context_line,
        tuple(findings),
    )


class _Reader:
    """Turns YAML nodes into values and gathers what is wrong with them."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.findings: list[RuleFinding] = []

    def fault(self, line: int, text: str, *, fatal: bool = True) -> None:
        self.findings.append(RuleFinding(self.source, line, fatal, text))

    @staticmethod
    def line(node: yaml.Node) -> int:
        return int(node.start_mark.line) + 1

    def top(self, text: str) -> dict[str, yaml.Node]:
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self.fault(mark.line + 1 if mark else 0, f"not YAML: {error.problem}")
            raise AxisRulesError(self.findings) from None
        except RecursionError:
            self.fault(0, "nested too deeply: expected lists of pairs [name, mesh axes]")
            raise AxisRulesError(self.findings) from None
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            self.fault(line, f"not YAML: {error.reason} (#x{error.character:04x})")
            raise AxisRulesError(self.findings) from None
        if not isinstance(root, yaml.MappingNode):
            found = "nothing" if root is None else _kind(root)
            self.fault(1, f"expected the keys {', '.join(KEYS)}, found {found}")
            raise AxisRulesError(self.findings)
        return self._keys(root)

    def _keys(self, root: yaml.MappingNode) -> dict[str, yaml.Node]:
        top: dict[str, yaml.Node] = {}
        for key, value in root.value:
            if key.value not in KEYS:
                self.fault(
                    self.line(key), f"expected one of {', '.join(KEYS)}, found key {key.value!r}"
                )
            elif key.value in top:
                self.fault(self.line(key), f"expected each key once, found {key.value!r} again")
            else:
                top[key.value] = value
        for key in REQUIRED:
            if key not in top:
                self.fault(0, f"expected the key {key!r}, found none: add it")
        return top

    def rules(self, node: yaml.Node | None) -> Iterator[tuple[int, str, Any]]:
        for pair in self._items(node, "logical_axis_rules", "pairs [name, mesh axes]"):
            line = self.line(pair)
            if not isinstance(pair, yaml.SequenceNode) or len(pair.value) != 2:
                self.fault(line, "logical_axis_rules: expected a pair [name, mesh axes]")
                continue
            name = self._string(pair.value[0], "the name of a rule")
            if name is not None:
                yield line, name, self._entry(pair.value[1], f"the rule of {name!r}")

    def entries(self, node: yaml.Node | None) -> list[tuple[int, Any]] | None:
        """The entries of ``data_sharding``, one per dimension of a batch of data."""
        if node is None:
            return None
        entries = [
            (self.line(item), self._entry(item, "data_sharding"))
            for item in self._items(node, "data_sharding", "one entry per dimension")
        ]
        # Doubles within one entry are refused with the entry.
        across = [axis for _, entry in entries for axis in {*_axes(entry)}]
        self._refuse_twice(self.line(node), across, "data_sharding")
        return entries

    def axes(self, node: yaml.Node | None, what: str) -> tuple[str, ...]:
        """A list of different mesh axes."""
        strings = [self._string(item, what) for item in self._items(node, what, "mesh axes")]
        axes = [axis for axis in strings if axis is not None]
        if node is not None:
            self._refuse_twice(self.line(node), axes, what)
        return tuple(axes)

    def optional_string(self, node: yaml.Node | None, what: str) -> str | None:
        return None if node is None or _is_null(node) else self._string(node, what)

    def check_mesh_axes(self, line: int, entry: Any, what: str, mesh_axes: frozenset[str]) -> None:
        for axis in _axes(entry):
            if axis in mesh_axes:
                continue
            if axis in CUSTOMARY_AXES:
                text = f"{what} names mesh axis {axis!r}, which mesh_axes lacks: it has no effect"
                self.fault(line, text, fatal=False)
            else:
                self.fault(
                    line,
                    f"expected mesh axes among {', '.join(sorted(mesh_axes))}, found {axis!r} in "
                    f"{what}: correct it, or add it to mesh_axes",
                )

    def _entry(self, node: yaml.Node, what: str) -> Any:
        """None, one mesh axis, or a tuple of them."""
        if _is_null(node):
            return None
        if isinstance(node, yaml.SequenceNode):
            return self.axes(node, what)
        return self._string(node, what)

    def _items(self, node: yaml.Node | None, what: str, content: str) -> list[yaml.Node]:
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode):
            self.fault(
                self.line(node), f"{what}: expected a list of {content}, found {_kind(node)}"
            )
            return []
        return list(node.value)

    def _string(self, node: yaml.Node, what: str) -> str | None:
        if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:str" and node.value:
            return str(node.value)
        found = _kind(node)
        self.fault(
            self.line(node), f"{what}: expected a name, found {found}: quote it if it is one"
        )
        return None

    def _refuse_twice(self, line: int, axes: list[str], what: str) -> None:
        twice = sorted({axis for axis in axes if axes.count(axis) > 1})
        if twice:
            found = ", ".join(map(repr, twice))
            self.fault(line, f"{what}: expected each mesh axis once, found {found} more than once")


def _axes(entry: Any) -> tuple[str, ...]:
    if entry is None:
        return ()
    return (entry,) if isinstance(entry, str) else entry


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return reprlib.repr(node.value)  # shortened: it may be a whole file
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


def _is_null(node: yaml.Node) -> bool:
    return bool(node.tag == "tag:yaml.org,2002:null")
