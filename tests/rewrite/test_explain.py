"""``nnx-migrate explain`` knows every name that a finding can carry."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from nnx_migrate.cli import main
from nnx_migrate.constructs import all_rules
from nnx_migrate.rewrite.explain import CONCERNS, explain, names

PACKAGE = Path(__file__).parents[2] / "nnx_migrate"

# Functions that take the name of a rule, and where: what is called -> position of ``rule``.
CARRIERS = {
    "ClassRefused": 3,
    "ClassRefusal": 3,
    "Remark": 1,
    "Finding": 0,
    "_finding": 2,
    "or_refusal": 1,
    "refuse": 1,
    "note": 1,
}


def is_passed_on(node: ast.expr) -> bool:
    """Whether it is the rule that something else came with."""
    return ast.unparse(node).rpartition(".")[2] == "rule"


def texts(tree: ast.Module) -> dict[str, str]:
    """Constants of a module that hold a string, by name."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }


MODULES = {
    path: ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted((PACKAGE / "rewrite").rglob("*.py"))
}


def imported(path: Path, tree: ast.Module) -> dict[str, str]:
    """String constants that a module takes from others of the rewriter."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            home = PACKAGE.parent / (node.module.replace(".", "/") + ".py")
            if home in MODULES:
                found |= {
                    alias.asname or alias.name: texts(MODULES[home])[alias.name]
                    for alias in node.names
                    if alias.name in texts(MODULES[home])
                }
    return found


def carried() -> Iterator[tuple[str, str]]:
    """Every name of a rule that the rewriter's code passes, with its place."""
    for path, tree in MODULES.items():
        known = {**imported(path, tree), **texts(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (rule := rule_of(node)) is not None:
                place = f"{path.name}:{node.lineno}"
                if isinstance(rule, ast.Constant):
                    yield place, str(rule.value)
                elif isinstance(rule, ast.Name) and rule.id in known:
                    yield place, known[rule.id]
                else:
                    assert is_passed_on(rule), f"{place}: {ast.unparse(rule)}"


def rule_of(call: ast.Call) -> ast.expr | None:
    """What a call passes as the name of a rule."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    if name not in CARRIERS:
        return None
    keywords = [one.value for one in call.keywords if one.arg == "rule"]
    given = [*call.args[CARRIERS[name] : CARRIERS[name] + 1], *keywords]
    return given[0] if given else None


CARRIED = sorted(set(carried()))


def test_the_code_was_read() -> None:
    assert len(CARRIED) > 100
    found = {name for _, name in CARRIED}
    assert found >= {"cut", "sizes", "evidence", "factory_function", "scope_function", "reference"}


@pytest.mark.parametrize("name", sorted({name for _, name in CARRIED}))
def test_every_name_that_a_finding_can_carry_is_explained(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", name]) == 0
    assert len(capsys.readouterr().out) > 80


def test_no_explanation_is_of_a_name_that_nothing_carries() -> None:
    forms = {"explicit"}  # the form that needs no finding
    assert set(CONCERNS) - forms <= {name for _, name in CARRIED}


def test_a_name_of_both_kinds_is_explained_as_both() -> None:
    for name in set(CONCERNS) & {rule.name for rule in all_rules()}:
        assert explain(name).startswith(CONCERNS[name])
        assert "Example (" in explain(name)


def test_everything_listed_is_explained() -> None:
    assert all(explain(name) for name in names())


def test_lines_fit_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "sizes"]) == 0
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= 100


def test_an_unknown_name_is_told_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "evidenc"]) == 2
    assert "unknown rule 'evidenc' (did you mean evidence?)" in capsys.readouterr().err
