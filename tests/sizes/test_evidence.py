"""Recorded sizes beside inferred ones: used, confirmed, contradicted, stale."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path
from typing import Any

import pytest

from nnx_migrate.evidence import store
from nnx_migrate.evidence.observations import Call, ClassKey, Instance, Place, SourceFile, Trace
from nnx_migrate.evidence.read import load
from nnx_migrate.evidence.schema import create
from nnx_migrate.sizes import ClassSizes, SizeSource, analyse
from nnx_migrate.sizes.evidence import ProjectEvidence
from nnx_migrate.sizes.recorded_text import expression_of, recorded_text
from tests.sizes.inference import arguments, compact, problems, project_of, sites

OPAQUE = "y = mystery(x)\nreturn nn.Dense(3)(y)"
IN_LOOP = "y = x\nfor i in range(self.n):\n    y = nn.Dense(self.w)(mystery(y))\nreturn y"


def recorded(
    tmp_path: Path,
    source: str,
    sizes: dict[str, Any],
    fields: dict[str, Any] | None = None,
    count: int = 1,
    text: str | None = None,
) -> tuple[ClassSizes, ProjectEvidence]:
    """Analyse ``main.Model`` with evidence of its constructor calls.

    ``fields``: numbers, or tuples of numbers, each of which the traces scale. ``sizes``: text of a constructor call -> function from fields, width of the input and round to
    the width of what the submodule was called with. ``text``: what the file read when recorded.
    """
    project = project_of({"main": source})
    module = project.modules["main"]
    hashes = {module.path: hashlib.sha256(module.text.encode()).hexdigest()}
    digest = hashlib.sha256((text or module.text).encode()).hexdigest()
    calls = {
        ast.unparse(node): node for node in ast.walk(module.tree) if isinstance(node, ast.Call)
    }

    names: dict[str, Any] = {"x.shape[-1]": 5}
    for name, value in (fields or {}).items():
        items = enumerate(value) if isinstance(value, tuple) else ()
        names |= {f"self.{name}[{i}]": one for i, one in items} or {f"self.{name}": value}

    def trace(changes: dict[str, int]) -> Trace:
        values = {**names, **changes}
        seen = []
        for call, size in sizes.items():
            node = calls[call]
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            place = Place(
                digest, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
            )
            for index in range(count if "self.w" in call else 1):
                seen_size = size(values, index)
                last = seen_size if isinstance(seen_size, tuple) else (seen_size,)
                shapes = (("inputs", (2, *last)),)
                seen.append(Call(place, index, "Dense", f"Dense_{index}", "", "__call__", shapes))
        return Trace(changes, tuple(seen))

    scaled = [trace({name: value * k}) for name, value in names.items() for k in (2, 3)]
    instance = Instance(
        ClassKey(digest, "main", "Model"),
        "__call__",
        {
            "$": "module",
            "module": "main",
            "name": "Model",
            "fields": {
                name: {"$": "tuple", "items": [*value]} if isinstance(value, tuple) else value
                for name, value in (fields or {}).items()
            },
        },
        {"x": {"$": "array", "shape": [2, 5], "dtype": "float32"}},
        traces=(trace({}), *scaled, trace({"x.shape[-2]": 4})),
    )
    path = tmp_path / "sizes.db"
    create(path)
    store.add(path, [SourceFile(digest, "main", "main.py")], [instance])
    evidence = ProjectEvidence(load(path), project, hashes)
    return analyse(project, None, evidence)["main.Model"], evidence


def sources(result: ClassSizes) -> list[SizeSource]:
    return [origin.source for origin in result.origins.values()]


def test_a_size_that_the_code_leaves_open_is_the_recorded_expression(tmp_path: Path) -> None:
    result, _ = recorded(
        tmp_path, compact(OPAQUE), {"nn.Dense(3)": lambda v, i: 2 * v["x.shape[-1]"]}
    )
    assert sites(result) == {"nn.Dense(3)": {"in_features": "2 * in_features"}}
    assert arguments(result) == ["in_features"]
    assert sources(result) == [SizeSource.RECORDED]
    assert "2 * x.shape[-1] is how it was recorded" in result.review[0][1]


def test_an_argument_may_have_a_name_in_any_script() -> None:
    info = project_of({"main": compact(OPAQUE, arguments="σx")}).linen["main.Model"]
    call = next(node for node in ast.walk(info.node) if isinstance(node, ast.Call))
    size = expression_of("2 * σx.shape[-1]", info, call)
    assert size is not None
    assert recorded_text(size) == "2 * σx.shape[-1]"


def test_without_evidence_the_same_size_is_an_argument_of_its_own(tmp_path: Path) -> None:
    result = analyse(project_of({"main": compact(OPAQUE)}))["main.Model"]
    assert sites(result) == {"nn.Dense(3)": {"in_features": "Dense_0_in_features"}}
    assert result.origins == {}


def test_a_size_inside_a_loop_may_be_over_fields_and_the_loops_count(tmp_path: Path) -> None:
    result, _ = recorded(
        tmp_path,
        compact(IN_LOOP, "n: int;w: int"),
        {"nn.Dense(self.w)": lambda v, i: v["x.shape[-1]"] + i * v["self.w"]},
        {"n": 3, "w": 4},
        count=3,
    )
    expected = {"nn.Dense(self.w)": {"in_features": "in_features + i * self.w"}}
    assert (problems(result), sites(result)) == ([], expected)


@pytest.mark.parametrize(
    "first", ["if i > 0:\n        continue", "i = i + 1", "i, j = 0, i", "[i := 0]"]
)
def test_the_count_of_a_loop_that_skips_or_binds_it_again_is_not_used(
    tmp_path: Path, first: str
) -> None:
    body = IN_LOOP.replace("    y = nn", f"    {first}\n    y = nn")
    result, _ = recorded(
        tmp_path,
        compact(body, "n: int;w: int"),
        {"nn.Dense(self.w)": lambda v, i: v["x.shape[-1]"] + i * v["self.w"]},
        {"n": 3, "w": 4},
        count=3,
    )
    assert SizeSource.RECORDED not in sources(result)


def test_an_inferred_size_that_every_recorded_call_has_is_from_both(tmp_path: Path) -> None:
    source = compact("return nn.Dense(3)(nn.Dense(self.w)(x))", "w: int")
    result, _ = recorded(
        tmp_path,
        source,
        {
            "nn.Dense(3)": lambda v, i: v["self.w"],
            "nn.Dense(self.w)": lambda v, i: v["x.shape[-1]"],
        },
        {"w": 4},
    )
    assert sources(result) == [SizeSource.BOTH, SizeSource.BOTH]
    assert sites(result)["nn.Dense(3)"] == {"in_features": "self.w"}
    assert result.review == ()


def test_an_inferred_size_that_a_recorded_call_contradicts_refuses_the_class(
    tmp_path: Path,
) -> None:
    source = compact("return nn.Dense(3)(nn.Dense(self.w)(x))", "w: int")
    result, _ = recorded(tmp_path, source, {"nn.Dense(3)": lambda v, i: 7}, {"w": 4})
    (problem,) = problems(result)
    assert "the code and the recorded calls disagree on in_features" in problem
    assert "self.w is 4, the recorded call has 7" in problem


@pytest.mark.parametrize(
    ("size", "expected"),
    [(lambda v, i: v["x.shape[-1]"], [SizeSource.BOTH]), (lambda v, i: 7, "disagree")],
    ids=["as recorded", "not as recorded"],
)
def test_a_choice_by_an_input_that_the_recorded_calls_leave_out_is_compared(
    tmp_path: Path, size: Any, expected: Any
) -> None:
    body = "layer = nn.Dense(3)\nreturn layer(x) if memory is None else layer(memory)"
    source = compact(body, arguments="x, memory=None")
    result, _ = recorded(tmp_path, source, {"nn.Dense(3)": size})
    choice = "memory_features if memory_features is not None else x_features"
    assert sites(result) == {"nn.Dense(3)": {"in_features": choice}}
    if expected == "disagree":
        assert "else x.shape[-1] is 5, the recorded call has 7" in problems(result)[0]
    else:
        assert (sources(result), problems(result)) == (expected, [])


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (lambda v: (v["self.h"], v["x.shape[-1]"] // v["self.h"]), SizeSource.BOTH),
        (lambda v: (v["self.h"], 7), None),
    ],
    ids=["as recorded", "not as recorded"],
)
def test_a_layer_over_two_axes_is_compared_on_both(
    tmp_path: Path, last: Any, expected: SizeSource | None
) -> None:
    layer = "nn.DenseGeneral(3, axis=(-2, -1))"
    body = f"x = x.reshape(2, self.h, x.shape[-1] // self.h)\nreturn {layer}(x)"
    result, _ = recorded(tmp_path, compact(body, "h: int"), {layer: lambda v, i: last(v)}, {"h": 1})
    assert sites(result)[layer] == {"in_features": "(self.h, in_features // self.h)"}
    assert [origin.source for origin in result.origins.values() if not problems(result)] == (
        [expected] if expected else []
    )
    assert any("disagree" in one for one in problems(result)) is (expected is None)


def test_evidence_of_another_text_of_the_file_is_stale_and_not_used(tmp_path: Path) -> None:
    result, evidence = recorded(
        tmp_path,
        compact(OPAQUE),
        {"nn.Dense(3)": lambda v, i: 2 * v["x.shape[-1]"]},
        text=compact(OPAQUE) + "# edited\n",
    )
    assert sites(result) == {"nn.Dense(3)": {"in_features": "Dense_0_in_features"}}
    assert [(info.name, file) for info, file in evidence.stale] == [("main.Model", "main.py")]


def test_evidence_that_ran_another_text_of_another_file_is_stale(tmp_path: Path) -> None:
    _, evidence = recorded(
        tmp_path, compact(OPAQUE), {"nn.Dense(3)": lambda v, i: 2 * v["x.shape[-1]"]}
    )
    (cls,) = evidence.evidence.classes
    helper = parse_helper(evidence)
    assert list(evidence.stale) == []
    object.__setattr__(cls, "depends", (helper,))
    assert [file for _, file in evidence.stale] == ["helper.py"]


def parse_helper(evidence: ProjectEvidence) -> str:
    """Let the recorded class depend on a file of the project that reads otherwise now."""
    from nnx_migrate.source.project import parse

    module = parse("helper", "helper.py", "x = 2\n")
    evidence.project.modules["helper"] = module
    evidence.__dict__.pop("by_module", None)
    object.__setattr__(evidence, "hashes", {**evidence.hashes, "helper.py": "now"})
    old = "then"
    object.__setattr__(evidence.evidence, "modules", {**evidence.evidence.modules, old: "helper"})
    object.__setattr__(evidence.evidence, "names", {**evidence.evidence.names, old: "helper.py"})
    return old


@pytest.mark.parametrize("width", [4, 9])
def test_a_size_that_no_expression_explains_stays_an_argument(tmp_path: Path, width: int) -> None:
    result, _ = recorded(
        tmp_path,
        compact(OPAQUE, "w: int"),
        {"nn.Dense(3)": lambda v, i: width if v["x.shape[-1]"] == 5 else v["x.shape[-1]"] ** 2},
        {"w": 4},
    )
    assert sites(result) == {"nn.Dense(3)": {"in_features": "Dense_0_in_features"}}
    assert sources(result) == []
