"""Every construct has one file, a page, a test file and an example that holds."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import jax
import numpy as np
import pytest

import nnx_migrate
from nnx_migrate.constructs import all_constructs, all_layers
from nnx_migrate.model import Form
from nnx_migrate.parity import ParityCase, check, instantiate
from tests.constructs.pages import FOLDER, code, pages, program, rewritten
from tests.rewrite.running import module_of

PACKAGE = Path(nnx_migrate.__file__).parent
CONSTRUCTS = all_constructs()
# What reads code and decides; only a construct's own file says what its layer is.
READING = ("abstract", "sizes", "rewrite")
# Files outside of constructs that are about one layer: NNX's have other class names, bits or methods.
ABOUT_ONE = {
    "rewrite/classes/setup/tied_weights.py": {"Dense"},
}


def test_every_file_of_the_folder_is_a_construct() -> None:
    files = {path.stem for path in (PACKAGE / "constructs").glob("*.py")} - {"__init__"}
    assert files == set(CONSTRUCTS)


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_every_construct_has_a_test_file_and_says_for_which_versions(name: str) -> None:
    assert Path(__file__).with_name(f"test_{name}.py").exists()
    assert "0.12.8" in (CONSTRUCTS[name].doc or "")
    assert CONSTRUCTS[name].example or CONSTRUCTS[name].lazy


def test_the_pages_are_what_the_constructs_say() -> None:
    """Written anew by ``python -m tests.constructs.pages``."""
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert written == pages()


EXAMPLES = [name for name, one in CONSTRUCTS.items() if one.example]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_is_explicit_and_the_same_model(name: str) -> None:
    construct = CONSTRUCTS[name]
    before, result = program(construct.example), rewritten(construct.example)
    assert [one.reason for one in result.classes if one.form is not Form.EXPLICIT] == []
    with module_of("linen_side", before) as old, module_of("nnx_side", code(result)) as new:
        made = old.Model()
        names = {"jax": jax, "jnp": jax.numpy}
        inputs = tuple(np.asarray(one) for one in eval(f"({construct.inputs},)", names))
        collections = {one for one in made.init(jax.random.key(0), *inputs) if one != "params"}
        case = ParityCase(
            linen=made,
            nnx=lambda rngs: instantiate(new.Model, made, inputs, rngs, map=result.migration_map),
            inputs=inputs,
            collections=tuple(one for one in sorted(collections) if not one.endswith("_axes")),
        )
        report = check(case)
    assert report.verdict in ("identical", "equal_by_rules"), report


@pytest.mark.parametrize(
    "text", [text for one in CONSTRUCTS.values() for text in one.lazy], ids=len
)
def test_what_is_said_to_be_lazy_is_lazy(text: str) -> None:
    found = {one.name: one for one in rewritten(text).classes}
    assert found["model.Model"].form is Form.LAZY
    assert found["model.Model"].reason


def test_only_a_constructs_file_knows_its_layer() -> None:
    """Adding a layer is one file and its tests: nothing else that decides names one."""
    names = "|".join(layer.name for layer in all_layers().values())
    pattern = re.compile(rf"""["'](?:flax\.linen\.)?({names})["']""")
    found: dict[str, set[str]] = {}
    for folder in READING:
        for path in (PACKAGE / folder).rglob("*.py"):
            said = set(pattern.findall(path.read_text(encoding="utf-8")))
            if said:
                found[path.relative_to(PACKAGE).as_posix()] = said
    assert found == ABOUT_ONE


def test_prelu_is_in_one_file() -> None:
    """The example of CONTRIBUTING.md; what lazy code imports has all of Linen's names."""
    files = [path for path in PACKAGE.rglob("*.py") if "linen" not in path.parts]
    naming = [path for path in files if "PReLU" in path.read_text(encoding="utf-8")]
    assert [path.name for path in naming] == ["prelu.py"]


def test_the_layer_of_the_tutorial_is_the_one_that_runs() -> None:
    guide = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = guide.partition("```python\nPRELU = ")[2].partition("\n\n")[0]
    source = (PACKAGE / "constructs" / "prelu.py").read_text(encoding="utf-8")
    written = source.partition("\nPRELU = ")[2].partition("\n\n")[0]
    assert ast.dump(ast.parse(block)) == ast.dump(ast.parse(written))
