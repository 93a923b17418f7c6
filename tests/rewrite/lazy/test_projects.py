"""Whole requests in the lazy form: what stays Linen, what fails, what is counted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nnx_migrate.model import FileStatus, Form, Outcome, RewriteResult, Tally
from nnx_migrate.rewrite.forms import rewrite_lazily
from nnx_migrate.rewrite.lazy import run
from nnx_migrate.rewrite.request import RewriteRequest
from nnx_migrate.source.files import SourceText
from tests.rewrite.projects import LINEN, ROOT, dense, source

TWO = LINEN + dense("A") + dense("B")


def lazily(files: Mapping[str, str], **options: Any) -> RewriteResult:
    sources = tuple(source(path, text) for path, text in files.items())
    return rewrite_lazily(RewriteRequest(ROOT, sources, base=ROOT, **options))


def code(result: RewriteResult, path: str = "m.py") -> str | None:
    return next(one.code for one in result.files if one.path == path)


def forms(result: RewriteResult) -> dict[str, str]:
    return {one.name: one.form.value if one.form else one.outcome.value for one in result.classes}


def test_every_class_becomes_lazy_and_every_place_is_counted() -> None:
    text = TWO + "model = A()\nvariables = model.init(key, x)\napply = model.apply\n"
    result = lazily({"m.py": text})
    assert forms(result) == {"m.A": "lazy", "m.B": "lazy"}
    assert result.references == Tally(6, rewritten=6)
    assert result.call_sites == Tally(3, rewritten=3)
    assert result.findings == ()


def test_local_classes_have_the_names_that_python_gives_them() -> None:
    text = f"{LINEN}def make():\n    class Inner(nn.Module):\n        pass\n    return Inner\n"
    assert forms(lazily({"m.py": text})) == {"m.make.<locals>.Inner": "lazy"}


def test_re_exports_follow_by_themselves() -> None:
    files = {
        "pkg/__init__.py": "from .common import nn\n",
        "pkg/common.py": "import flax.linen as nn\n",
        "pkg/model.py": "from . import nn\n\n\nclass A(nn.Module):\n    pass\n",
    }
    result = lazily(files)
    assert code(result, "pkg/common.py") == "import nnx_migrate.linen as nn\n"
    assert code(result, "pkg/model.py") is None
    assert forms(result) == {"pkg.model.A": "lazy"}
    assert result.references == Tally(1, rewritten=1)


def test_a_file_that_is_no_python_fails_alone() -> None:
    result = lazily({"m.py": TWO, "bad.py": "import flax.linen as nn\nclass (\n"})
    statuses = {one.path: one.status for one in result.files}
    assert statuses == {"m.py": FileStatus.REWRITTEN, "bad.py": FileStatus.FAILED}
    assert "not valid Python at line 2" in str(result.files[0].error)


def test_a_bug_of_ours_costs_one_file_and_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = run.plan_file

    def broken(nodes: Any, *more: Any) -> Any:
        if len(nodes[0].body) == 2:
            raise KeyError("lost")
        return plan(nodes, *more)

    monkeypatch.delenv("NNX_MIGRATE_DEBUG", raising=False)
    monkeypatch.setattr(run, "plan_file", broken)
    result = lazily({"m.py": TWO, "bad.py": LINEN + dense("C")})
    error = next(one.error for one in result.files if one.path == "bad.py")
    assert "internal error at test_projects.py" in str(error)
    assert "KeyError: 'lost'" in str(error)
    refused = {one.name: one.outcome for one in result.classes}
    assert refused == {
        "bad.C": Outcome.REFUSED,
        "m.A": Outcome.REWRITTEN,
        "m.B": Outcome.REWRITTEN,
    }
    assert result.references == Tally(9, rewritten=6, refused=3)


def test_a_kept_class_stays_beside_lazy_ones_under_an_alias_of_its_own() -> None:
    text = TWO.replace("class A(nn.Module):", "class A(nn.Module):  # nnx-migrate: keep")
    result = lazily({"m.py": text})
    assert code(result) == (
        "import flax.linen as nn\nimport nnx_migrate.linen as lnn\n\n\n"
        "class A(nn.Module):  # nnx-migrate: keep\n"
        "    @nn.compact\n    def __call__(self, x):\n        return nn.Dense(2)(x)\n\n\n"
        "class B(lnn.Module):\n"
        "    @lnn.compact\n    def __call__(self, x):\n        return lnn.Dense(2)(x)\n\n\n"
    )
    assert forms(result) == {"m.A": "kept", "m.B": "lazy"}
    assert result.references == Tally(6, rewritten=3, kept=3)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from flax import linen as nn",
            "from flax import linen as nn\nfrom nnx_migrate import linen as lnn",
        ),
        (
            "import flax.linen as nn, jax",
            "import flax.linen as nn, jax\nimport nnx_migrate.linen as lnn",
        ),
    ],
)
def test_a_second_import_stands_below_the_first(before: str, after: str) -> None:
    result = lazily({"m.py": TWO.replace("import flax.linen as nn", before)}, select=("m.B",))
    assert str(code(result)).startswith(after + "\n")


def test_names_of_the_module_get_names_of_their_own_where_both_are_used() -> None:
    text = (
        "from flax.linen import Dense, Module, compact\n\n\n"
        "class A(Module):\n    @compact\n    def __call__(self, x):\n        return Dense(2)(x)\n\n\n"
        "class B(Module):\n    layer: Module\n"
    )
    result = lazily({"m.py": text}, select=("m.B",))
    assert str(code(result)).startswith(
        "from flax.linen import Dense, Module, compact\n"
        "from nnx_migrate.linen import Module as LazyModule\n"
    )
    assert "class B(LazyModule):\n    layer: LazyModule\n" in str(code(result))
    assert forms(result) == {"m.A": "kept", "m.B": "lazy"}


def test_the_second_alias_is_one_that_the_file_does_not_use() -> None:
    text = TWO + "lnn = 3\n"
    assert "import nnx_migrate.linen as lnn_\n" in str(
        code(lazily({"m.py": text}, exclude=("m.A",)))
    )


def test_a_selected_class_changes_alone() -> None:
    files = {"m.py": TWO + "model = A()\n", "n.py": LINEN + dense("C") + "y = nn.relu(0)\n"}
    result = lazily(files, select=("n.C",))
    assert code(result) is None
    assert "y = nn.relu(0)" in str(code(result, "n.py"))
    assert forms(result) == {"m.A": "kept", "m.B": "kept", "n.C": "lazy"}
    assert result.references == Tally(10, rewritten=3, kept=7)


def test_an_alias_that_kept_classes_of_other_files_take_stays_linen() -> None:
    files = {
        "common.py": "import flax.linen as nn\n",
        "a.py": "from common import nn\n\n\nclass A(nn.Module):  # nnx-migrate: keep\n    pass\n",
        "b.py": "from common import nn\n\n\nclass B(nn.Module):\n    pass\n",
    }
    result = lazily(files)
    assert code(result, "common.py") is None
    assert code(result, "b.py") == (
        "from common import nn\nfrom nnx_migrate import linen as lnn\n\n\n"
        "class B(lnn.Module):\n    pass\n"
    )
    assert forms(result) == {"a.A": "kept", "b.B": "lazy"}


def test_the_base_of_a_kept_class_is_kept_and_its_subclass_too() -> None:
    text = (
        f"{LINEN}class A(nn.Module):\n    pass\n\n\n"
        "class B(A):  # nnx-migrate: keep\n    pass\n\n\nclass C(B):\n    pass\n"
    )
    result = lazily({"m.py": text})
    assert forms(result) == {"m.A": "kept", "m.B": "kept", "m.C": "kept"}
    assert "B, which is kept" in str(result.classes[0].reason) or "inherits" in str(
        result.classes[0].reason
    )


def test_a_line_that_is_kept_keeps_its_references() -> None:
    text = "import flax.linen as nn\n\na = nn.relu\nb = nn.gelu  # nnx-migrate: keep\n"
    result = lazily({"m.py": text})
    assert code(result) == (
        "import flax.linen as nn\nimport nnx_migrate.linen as lnn\n\n"
        "a = lnn.relu\nb = nn.gelu  # nnx-migrate: keep\n"
    )
    assert result.references == Tally(2, rewritten=1, kept=1)


def test_a_class_whose_base_is_linen_in_another_package_says_so(tmp_path: Path) -> None:
    vendor = tmp_path / "vendorlib"
    vendor.mkdir()
    (vendor / "__init__.py").write_text("from .nets import Net as Base\n")
    (vendor / "nets.py").write_text(
        "import flax.linen as nn\n\n\nclass Net(nn.Module):\n    pass\n"
    )
    (tmp_path / "m.py").write_text("")
    text = (
        "import flax.linen as nn\nfrom vendorlib import Base\n\n\n"
        "class Mine(Base):\n    layer: nn.Module\n"
    )
    project = tmp_path / "project"
    project.mkdir()
    moved = SourceText(project / "m.py", text)
    import sys

    sys.path.insert(0, str(tmp_path))
    try:
        result = rewrite_lazily(RewriteRequest(project, (moved,), base=project))
    finally:
        sys.path.remove(str(tmp_path))
    (cls,) = result.classes
    assert (cls.name, cls.outcome) == ("m.Mine", Outcome.KEPT)
    assert cls.reason == "its base is Linen in package vendorlib"
    assert "import nnx_migrate.linen as nn" in str(code(result))


def test_a_base_in_a_file_beside_is_of_the_project(tmp_path: Path) -> None:
    texts = {
        "nets.py": LINEN + dense("Net"),
        "sub.py": "import flax\nfrom nets import Net\n\n\nclass Mine(Net):\n    extra: int = 1\n",
    }
    files = []
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        files.append(SourceText(tmp_path / name, text))
    result = rewrite_lazily(RewriteRequest(tmp_path, tuple(files), base=tmp_path))
    assert forms(result) == {"nets.Net": "lazy", "sub.Mine": "lazy"}


def test_running_again_changes_nothing() -> None:
    text = TWO.replace("class A(nn.Module):", "class A(nn.Module):  # nnx-migrate: keep")
    once = str(code(lazily({"m.py": text})))
    assert code(lazily({"m.py": once})) is None


def test_lazy_code_has_no_reference_left_to_count() -> None:
    result = lazily({"m.py": TWO.replace("flax.linen", "nnx_migrate.linen")})
    assert (result.references, result.findings) == (Tally(), ())
    assert Form.LAZY not in {one.form for one in result.classes}


@pytest.mark.parametrize(
    "binding",
    [
        "nnx_migrate = 3",
        "def f(nnx_migrate): ...",
        "class nnx_migrate: ...",
        "from tools import nnx_migrate",
        "import flax as nnx_migrate",
    ],
)
def test_a_file_that_needs_our_name_for_something_else_fails_alone(binding: str) -> None:
    whole = f"import flax\n\n{binding}\nx = flax.linen.Dense(3)\n"
    result = lazily({"m.py": whole, "other.py": TWO, "alias.py": f"{LINEN}{binding}\n"})
    statuses = {one.path: one.status for one in result.files}
    assert statuses.pop("m.py") is FileStatus.FAILED
    assert set(statuses.values()) == {FileStatus.REWRITTEN}
    error = next(one.error for one in result.files if one.path == "m.py")
    assert error is not None
    assert "line 3 gives the name nnx_migrate to something else" in error


LEAF = (
    "import flax.linen as nn\n\n\n"
    "class Leaf(nn.Module):\n"
    "    @nn.compact\n"
    "    def __call__(self, x):\n"
    "        return nn.Dense(2)(x)\n"
)
LIFTING = (
    "import flax.linen as nn\nfrom m import Leaf\n\n\n"
    "class Top(nn.Module):\n"
    "    @nn.compact\n"
    "    def __call__(self, x):\n"
    "        return {}(x)\n"
)


def test_a_lift_that_stays_linens_and_takes_a_selected_class_is_told():
    files = {"m.py": LEAF, "n.py": LIFTING.format("nn.remat(Leaf)()")}
    result = lazily(files, select=("m.Leaf",))
    (finding,) = [one for one in result.findings if one.outcome is Outcome.REFUSED]
    assert (finding.path, finding.line) == ("n.py", 8)
    assert "takes Linen classes only" in finding.message
    assert "m.Leaf becomes lazy" in finding.message


def test_a_selected_class_that_is_built_by_what_stays_is_no_finding():
    files = {"m.py": LEAF, "n.py": LIFTING.format("Leaf()")}
    result = lazily(files, select=("m.Leaf",))
    assert [one for one in result.findings if one.outcome is Outcome.REFUSED] == []
