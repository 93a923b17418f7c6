"""The engine as a whole: what a request becomes."""

from __future__ import annotations

import subprocess
import sys
from textwrap import indent

import pytest

import nnx_migrate
from nnx_migrate.model import Confidence, FileStatus, Outcome, Tally
from tests.rewrite.projects import LINEN, caller, dense, looped, only, outcomes, rewrite, texts

CALLS = "def run(key, x):\n    model = Layer()\n    return model.init(key, x)\n"


def test_a_class_is_rewritten_whole() -> None:
    result = rewrite({"m.py": LINEN + dense()})
    assert only(result) == (
        "from flax import nnx\n\n\n"
        "class Layer(nnx.Module):\n"
        "    def __init__(self, *, in_features: int, rngs: nnx.Rngs):\n"
        "        self.Dense_0 = nnx.Linear(in_features, 2, rngs=rngs)\n\n"
        "    def __call__(self, x):\n"
        "        return self.Dense_0(x)\n\n\n"
    )
    (cls,) = result.classes
    assert (cls.name, cls.path, cls.line, cls.confidence) == (
        "m.Layer",
        "m.py",
        4,
        Confidence.EXACT,
    )
    assert cls.new_arguments == ("in_features",)
    assert result.references == Tally(3, rewritten=3)
    assert [one.linen for one in result.migration_map.classes] == ["m.Layer"]


def test_a_refused_class_is_untouched_with_reason_place_and_recipe() -> None:
    text = LINEN + looped()
    result = rewrite({"m.py": text})
    assert only(result) is None
    (cls,) = result.classes
    assert cls.outcome is Outcome.REFUSED
    assert "while_loop" in (cls.reason or "")
    (finding,) = result.findings
    assert (finding.path, finding.line, finding.outcome) == ("m.py", 8, Outcome.REFUSED)
    assert finding.message.startswith(f"{cls.reason}; ")
    assert result.references == Tally(3, refused=3)


def test_good_and_refused_classes_of_one_file_part_ways() -> None:
    text = LINEN + dense("A") + looped("B") + dense("C")
    result = rewrite({"m.py": text})
    assert outcomes(result) == {"m.A": "rewritten", "m.B": "refused", "m.C": "rewritten"}
    code = only(result) or ""
    assert looped("B") in code
    assert "import flax.linen as nn\n" in code
    assert "class A(nnx.Module)" in code


def test_classes_of_one_name_in_one_scope_are_refused_and_each_is_reported() -> None:
    result = rewrite({"m.py": LINEN + dense("Twice") + dense("Twice") + dense("Once")})
    found = [(one.name, one.line, one.outcome) for one in result.classes]
    assert found == [
        ("m.Twice", 4, Outcome.REFUSED),
        ("m.Twice", 10, Outcome.REFUSED),
        ("m.Once", 16, Outcome.REWRITTEN),
    ]
    assert "bound more than once" in str(result.classes[0].reason)


def test_classes_of_one_name_in_one_function_are_refused_with_those_that_build_them() -> None:
    parts = [
        dense("Child"),
        "Child()\n",
        dense("Child", "5"),
        caller("Parent", "Child()(x)"),
        dense(),
    ]
    result = rewrite({"m.py": LINEN + "def make():\n" + indent("".join(parts), "    ")})
    assert [(one.name.rpartition(".")[2], one.outcome) for one in result.classes] == [
        ("Child", Outcome.REFUSED),
        ("Child", Outcome.REFUSED),
        ("Parent", Outcome.REFUSED),
        ("Layer", Outcome.REWRITTEN),
    ]
    assert [one.linen for one in result.migration_map.classes] == ["m.make.<locals>.Layer"]


def test_local_classes_that_build_one_another_are_rewritten() -> None:
    body = dense("Child") + caller("Parent", "Child()(x)")
    text = "def make():\n" + "".join(f"    {line}\n" for line in body.splitlines() if line)
    result = rewrite({"m.py": LINEN + text})
    assert {one.name: one.outcome for one in result.classes} == {
        "m.make.<locals>.Child": Outcome.REWRITTEN,
        "m.make.<locals>.Parent": Outcome.REWRITTEN,
    }


def test_code_around_the_classes_that_cannot_be_settled_refuses_no_class() -> None:
    text = (
        LINEN
        + dense()
        + "def run(key, x):\n    model = nn.scan(Layer, length=2)()\n    return model.apply(key, x)\n"
    )
    assert [one.outcome for one in rewrite({"m.py": text}).classes] == [Outcome.REWRITTEN]


def test_a_file_without_linen_is_unchanged() -> None:
    result = rewrite({"m.py": "import os\n"})
    assert [(one.path, one.status) for one in result.files] == [("m.py", FileStatus.UNCHANGED)]
    assert result.references.total == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import flax.linen as nn\nclass (\n", "not valid Python at line 2, column 7"),
        ("print 'flax'\n", "is it Python 2?"),
        ("flax = '\0'\n", "null bytes"),
        ("x = (\n", "line 1"),
    ],
)
def test_a_bad_file_fails_in_one_line_and_others_are_done(text: str, reason: str) -> None:
    result = rewrite({"bad.py": text, "good.py": LINEN + dense()})
    bad, good = result.files
    assert (bad.path, bad.status, bad.code) == ("bad.py", FileStatus.FAILED, None)
    assert reason in (bad.error or "")
    assert "\n" not in (bad.error or "\n")
    assert good.status is FileStatus.REWRITTEN
    assert outcomes(result) == {"good.Layer": "rewritten"}


def test_a_bad_file_that_is_only_read_fails_nothing() -> None:
    result = rewrite({"good.py": LINEN + dense()}, context={"bad.py": "import flax\nclass (\n"})
    assert [one.path for one in result.files] == ["good.py"]


def test_files_of_one_module_name_are_kept_apart() -> None:
    files = {"examples/a/models.py": LINEN + dense("A"), "examples/b/models.py": LINEN + dense("A")}
    result = rewrite(files)
    assert [one.status for one in result.files] == [FileStatus.REWRITTEN] * 2
    assert len(outcomes(result)) == 2
    assert set(outcomes(result).values()) == {"rewritten"}
    assert result.references == Tally(6, rewritten=6)


def test_each_of_two_scripts_uses_the_models_beside_it() -> None:
    files = {
        "examples/a/models.py": LINEN + dense("A"),
        "examples/a/train.py": "import models\n\n\ndef run(x):\n    return models.A()\n",
        "examples/b/models.py": LINEN + dense("A"),
        "examples/b/train.py": "import models\n\n\ndef run(x):\n    return models.A()\n",
    }
    new = texts(rewrite(files), files)
    assert all("return lazy(models.A)()" in new[f"examples/{one}/train.py"] for one in "ab")


def test_a_caller_that_is_only_read_is_not_rewritten() -> None:
    result = rewrite({"m.py": LINEN + dense()}, context={"run.py": "from m import Layer\n" + CALLS})
    assert [one.path for one in result.files] == ["m.py"]
    assert outcomes(result) == {"m.Layer": "rewritten"}


def test_a_finding_in_an_inherited_method_is_placed_in_the_file_of_the_method() -> None:
    base = (
        LINEN
        + "#\n" * 50
        + "class Mixin:\n    def lift(self, x):\n        return self.make(3)(x)\n"
    )
    text = (
        "import flax.linen as nn\nimport base\n\n\nclass A(base.Mixin, nn.Module):\n"
        "    make: type\n\n    def __call__(self, x):\n        return self.lift(x)\n"
    )
    result = rewrite({"base.py": base, "a.py": text})
    assert outcomes(result) == {"a.A": "refused"}
    places = [(one.path, one.line) for one in result.findings if one.outcome is Outcome.REFUSED]
    lengths = {"base.py": base.count("\n"), "a.py": text.count("\n")}
    assert places
    assert all(line <= lengths[path] for path, line in places)


def test_a_class_that_builds_one_that_the_user_keeps_stays_too() -> None:
    text = LINEN + dense("A") + caller("Top", "nn.Dense(3)(A()(x))")
    result = rewrite({"m.py": text}, exclude=("m.A",))
    assert outcomes(result) == {"m.A": "kept", "m.Top": "refused"}
    assert {one.name: one.cut_by for one in result.classes}["m.Top"] == "m.A"


@pytest.mark.parametrize(
    "text",
    [
        LINEN + dense(),
        LINEN + dense("A") + looped("B") + dense("C"),
        LINEN + looped("B") + caller("Top", "nn.Dense(3)(B()(x))"),
        LINEN + dense() + CALLS,
        LINEN + dense() + "def act(x):\n    return nn.relu(x)\n",
        LINEN + dense() + "def count(m: nn.Module):\n    return m\n",
        "from flax import linen as nn, struct\n\n\n" + dense() + "S = struct.dataclass\n",
    ],
    ids=["good", "mixed", "built and refused", "call sites", "functions", "annotation", "imports"],
)
def test_rewriting_the_output_changes_nothing(text: str) -> None:
    files = {"m.py": text}
    once = texts(rewrite(files), files)
    assert texts(rewrite(once), once) == once
    compile(once["m.py"], "m.py", "exec")


def test_recursion_is_refused() -> None:
    text = LINEN + caller("A", "A()(nn.Dense(3)(x))")
    result = rewrite({"m.py": text})
    assert outcomes(result) == {"m.A": "refused"}
    assert result.classes[0].reason == "the class constructs itself"


@pytest.mark.parametrize(
    ("before", "body"),
    [
        ("import other\n", "other.Block(3)(x)"),
        ("@other\ndef make(x, w):\n    return nn.Dense(w)(x)\n", "make(x, 3)"),
        ("@other\ndef make(x):\n    return Layer()(x)\n", "make(x)"),
        ("import jax\n", "jax.vmap(lambda y: Layer()(y))(x)"),
        ("", "(self.block or Layer)(3)(x)"),
    ],
    ids=[
        "other package",
        "layer in decorated function",
        "class in decorated function",
        "lambda",
        "choice",
    ],
)
def test_a_submodule_nobody_can_place_refuses_its_class(before: str, body: str) -> None:
    text = (
        LINEN
        + dense()
        + before
        + "\n\n"
        + caller("Top", f"nn.Dense(3)({body})", "    block: type = None\n")
    )
    assert outcomes(rewrite({"m.py": text}))["m.Top"] == "refused"


# ---- rewrite_source


def test_rewrite_source_gives_code_and_findings() -> None:
    result = nnx_migrate.rewrite_source(LINEN + dense("A") + looped("B"))
    assert "class A(nnx.Module)" in result.code
    assert looped("B") in result.code  # its text stays, and imports the lazy form
    assert "import nnx_migrate.linen as nn" in result.code
    assert [(one.path, one.rule) for one in result.findings][-1][0] == "source.py"
    assert Outcome.REFUSED not in {one.outcome for one in result.findings}
    assert [(one.outcome.value, one.form) for one in result.classes] == [
        ("rewritten", "explicit"),
        ("rewritten", "lazy"),
    ]
    assert result.references == Tally(6, rewritten=6)


def test_rewrite_source_in_the_lazy_form_understands_nothing_and_needs_not_to() -> None:
    text = LINEN + dense("A") + looped("B")
    result = nnx_migrate.rewrite_source(text, form="lazy")
    assert result.code == text.replace("import flax.linen", "import nnx_migrate.linen")
    assert [one.form for one in result.classes] == ["lazy", "lazy"]


def test_rewrite_source_knows_three_forms() -> None:
    with pytest.raises(ValueError, match="expected one of auto, lazy, explicit"):
        nnx_migrate.rewrite_source("", form="lasy")


def test_rewrite_source_returns_text_without_linen_as_it_is() -> None:
    text = "import os\r\n\tx = 1\r\n".replace("\t", "")
    result = nnx_migrate.rewrite_source(text)
    assert (result.code, result.findings) == (text, ())


def test_rewrite_source_leaves_code_that_hangs_on_unknown_classes() -> None:
    text = "from elsewhere import Base\n\n\nclass A(Base):\n    pass\n"
    assert nnx_migrate.rewrite_source(text).code == text


@pytest.mark.parametrize("text", ["class (\n", "x = (\n", "flax = '\0'"])
def test_rewrite_source_raises_for_what_is_no_python(text: str) -> None:
    with pytest.raises(ValueError, match="not valid Python") as error:
        nnx_migrate.rewrite_source(text)
    assert "\n" not in str(error.value)


def test_rewrite_source_results_are_frozen() -> None:
    result = nnx_migrate.rewrite_source("")
    with pytest.raises(AttributeError):
        result.code = "other"  # type: ignore[misc]


def test_importing_the_package_loads_next_to_nothing() -> None:
    code = (
        "import sys, nnx_migrate\n"
        "light = not any(name.startswith('nnx_migrate.') for name in sys.modules)\n"
        "nnx_migrate.rewrite_source('x = 1')\n"
        "heavy = {'jax', 'numpy', 'flax', 'libcst'} & set(sys.modules)\n"
        "sys.exit(0 if light and not heavy else 1)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == 0
