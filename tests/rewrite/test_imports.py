"""Import statements of a rewritten file."""

from __future__ import annotations

import ast

import libcst as cst
import pytest

from nnx_migrate.rewrite.imports import ImportConflict, settle_imports
from tests.rewrite.projects import (
    LINEN,
    caller,
    dense,
    imports_of,
    only,
    outcomes,
    rewrite,
    rewrite_in_form,
    texts,
)

NNX = "from flax import nnx"


def fixed(text: str, *needed: str, exported: tuple[str, ...] = ()) -> str:
    module, tree = cst.parse_module(text), ast.parse(text)
    made = settle_imports(module, tree, frozenset(needed), "", lambda name: name in exported)
    return made.code


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import flax.linen as nn\n", f"{NNX}\n"),
        ("from flax import linen as nn\n", f"{NNX}\n"),
        ("from flax import linen\n", f"{NNX}\n"),
        ("import flax.linen\n", f"{NNX}\n"),
        ("from flax.linen import Dense as D\n", f"{NNX}\n"),
        (
            "import os\nfrom flax import linen as nn\nimport sys\n",
            f"import os\n{NNX}\nimport sys\n",
        ),
        ("from flax import linen as nn, struct\n", f"from flax import struct\n{NNX}\n"),
        ("from flax import struct, linen as nn\n", f"from flax import struct\n{NNX}\n"),
        ("import os, flax.linen as nn\n", f"import os\n{NNX}\n"),
        ("from flax import linen as nn  # layers\n", f"{NNX}  # layers\n"),
        ('"""Doc."""\nx = 1\n', f'"""Doc."""\n{NNX}\nx = 1\n'),
        ("x = 1\n", f"{NNX}\nx = 1\n"),
        ("", f"{NNX}\n"),
        ("import os", f"import os\n{NNX}"),
        ("import os\r\nx = 1\r\n", f"import os\r\n{NNX}\r\nx = 1\r\n"),
        (f"{NNX}\nfrom flax import linen as nn\n", f"{NNX}\n"),
        (f"import flax.linen as nn\n{NNX}, struct\n", f"{NNX}, struct\n"),
        ("from flax import (\n    linen as nn,\n    struct,  # data\n)\n", None),
    ],
)
def test_unused_linen_goes_and_nnx_comes(before: str, after: str | None) -> None:
    if after is None:
        after = f"from flax import (\n    struct,  # data\n)\n{NNX}\n"
    assert fixed(before, "nnx") == after


@pytest.mark.parametrize(
    "text",
    [
        "import flax.linen as nn\nprint(nn.relu)\n",
        "from flax import linen as nn\n\n\ndef f(x: 'nn.Module'):\n    pass\n",
        "from flax import linen as nn\n\n__all__ = ['nn']\n",
        "from flax.linen import *\n",
        "import flax\n",
        "import flax.struct\n",
        "import flaxlinen as nn\n",
        "from .linen import Dense\n",
    ],
)
def test_what_is_used_or_no_linen_stays(text: str) -> None:
    assert fixed(text) == text


def test_new_names_of_one_module_come_in_one_statement() -> None:
    made = fixed("import flax.linen as nn\n", "lazy", "nnx", "Size", "nnm")
    lines = sorted(made.splitlines())
    assert lines == [
        NNX,
        "from nnx_migrate import nn as nnm",
        "from nnx_migrate.linen import Size, lazy",
    ]


def test_a_name_that_other_files_take_from_here_stays() -> None:
    text = "from flax import linen as nn\n"
    assert fixed(text, exported=("nn",)) == text
    assert fixed(text, exported=("other",)) == ""


@pytest.mark.parametrize(
    ("names", "left"),
    [
        ("\n    Dense,\n    relu,  # used\n    Module,\n", "\n    relu,  # used\n"),
        (
            "\n    relu,  # used\n    # a remark\n    Module,\n",
            "\n    relu,  # used\n    # a remark\n",
        ),
        ("\n    Dense, relu,\n    Module, gelu\n", "\n    relu,\n    gelu\n"),
        ("Dense,\n    relu", "relu"),
        ("relu,\n    Dense", "relu,"),
        ("Dense, relu", "relu"),
        ("relu, Dense", "relu"),
    ],
)
def test_only_the_unused_names_leave_a_list(names: str, left: str) -> None:
    used = "relu(1)\n" + ("gelu(1)\n" if "gelu" in names else "")
    after = fixed(f"from flax.linen import ({names})\n{used}")
    compile(after, "m.py", "exec")
    assert after == f"from flax.linen import ({left})\n{used}"


def test_the_comment_of_a_name_that_goes_stays() -> None:
    before = "from flax.linen import (\n    relu,  # used\n    Module  # base\n)\nrelu(1)\n"
    after = "# base\nfrom flax.linen import (\n    relu,  # used\n)\nrelu(1)\n"
    assert fixed(before) == after


def test_names_leave_a_list_continued_by_a_backslash() -> None:
    before = "from flax.linen import relu, \\\n    Dense\nrelu(1)\n"
    assert fixed(before) == "from flax.linen import relu\nrelu(1)\n"


def test_the_last_statement_of_a_block_becomes_pass() -> None:
    before = "try:\n    import flax.linen as nn\nexcept ImportError:\n    raise\n"
    after = "try:\n    pass\nexcept ImportError:\n    raise\n"
    assert fixed(before) == after


def test_a_statement_among_others_in_a_block_is_removed() -> None:
    before = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import flax.linen as nn\n    import os\n"
    after = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import os\n"
    assert fixed(before) == after


def test_two_unused_statements_of_one_block_leave_valid_python() -> None:
    before = "if x:\n    import flax.linen as nn\n    from flax.linen import Dense\n"
    compile(fixed(before), "m.py", "exec")
    assert "flax" not in fixed(before)


def test_a_future_import_stays_first() -> None:
    before = "from __future__ import annotations\nx = 1\n"
    after = fixed(before, "nnx")
    compile(after, "m.py", "exec")
    assert imports_of(after) == ["from __future__ import annotations", NNX]


def test_a_future_import_behind_a_docstring_stays_first() -> None:
    after = fixed('"""Doc."""\nfrom __future__ import annotations\n\nx = 1\n', "nnx")
    compile(after, "m.py", "exec")
    assert NNX in after


def test_an_import_in_a_block_does_not_bind_for_the_module() -> None:
    before = f"if x:\n    {NNX}\n"
    with pytest.raises(ImportConflict, match="nnx"):
        fixed(before, "nnx")


@pytest.mark.parametrize(
    "taken",
    [
        "nnx = 3\n",
        "def nnx():\n    pass\n",
        "class nnx:\n    pass\n",
        "from other import nnx\n",
        "import other as nnx\n",
        "def f(nnx):\n    return nnx\n",
        "for nnx in ():\n    pass\n",
        "try:\n    pass\nexcept ValueError as nnx:\n    pass\n",
        "async def nnx():\n    pass\n",
        "match 1:\n    case nnx:\n        pass\n",
    ],
)
def test_a_name_that_means_something_else_is_a_conflict(taken: str) -> None:
    with pytest.raises(ImportConflict, match="'nnx' is needed"):
        fixed("import flax.linen as nn\n" + taken, "nnx")


def test_a_conflict_refuses_the_classes_of_the_file_and_leaves_others_alone() -> None:
    linen = "import flax.linen as nn\n\n\n"
    result = rewrite({"a.py": linen + "nnx = 3\n\n\n" + dense("A"), "b.py": linen + dense("B")})
    assert outcomes(result) == {"a.A": "refused", "b.B": "rewritten"}
    assert [one.status.value for one in result.files] == ["unchanged", "rewritten"]
    (finding,) = (one for one in result.findings if one.rule == "file")
    assert "'nnx'" in finding.message
    assert "rename it" in finding.message


@pytest.mark.parametrize(
    ("imports", "module", "layer"),
    [
        ("import flax.linen as nn", "nn.Module", "nn.Dense"),
        ("from flax import linen", "linen.Module", "linen.Dense"),
        ("import flax.linen", "flax.linen.Module", "flax.linen.Dense"),
        ("import flax", "flax.linen.Module", "flax.linen.Dense"),
        ("from flax.linen import Dense as D, Module, compact", "Module", "D"),
        ("from flax.linen.linear import Dense\nfrom flax import linen as nn", "nn.Module", "Dense"),
    ],
)
def test_every_spelling_of_linen_is_understood(imports: str, module: str, layer: str) -> None:
    compact = "compact" if module == "Module" else module.replace("Module", "compact")
    text = (
        f"{imports}\n\n\nclass A({module}):\n    @{compact}\n    def __call__(self, x):\n"
        f"        return {layer}(3)(x)\n"
    )
    result = rewrite({"m.py": text})
    assert outcomes(result) == {"m.A": "rewritten"}
    code = only(result) or ""
    assert "nnx.Linear(in_features, 3, rngs=rngs)" in code
    assert NNX in imports_of(code)
    assert not any("linen" in line for line in imports_of(code))


def test_a_re_export_is_followed_and_kept_for_who_takes_it() -> None:
    files = {
        "layers.py": "import flax.linen as nn\n",
        "m.py": "from layers import nn\n\n\n" + dense("A"),
    }
    result = rewrite(files)
    assert outcomes(result) == {"m.A": "rewritten"}
    assert [one.status.value for one in result.files] == ["unchanged", "rewritten"]


def test_a_shadowed_name_is_no_linen() -> None:
    text = "import torch.nn as nn\n\n\n" + caller("A", "nn.Dense(3)(x)")
    result = rewrite({"m.py": text})
    assert result.classes == ()
    assert result.references.total == 0
    assert only(result) is None


LATE = """\
from package.models import Net as _net

OLD = {"Net": _net}

from package.other import run as _run

__getattr__ = _run(OLD)
"""


def test_a_new_import_stands_above_what_reads_it() -> None:
    files = {
        "package/__init__.py": "",
        "package/old.py": LATE,
        "package/other.py": "def run(table):\n    return table.get\n",
        "package/models.py": LINEN + dense("Net"),
    }
    result = rewrite_in_form(files, "auto")
    text = texts(result, files)["package/old.py"]
    assert text.index("from nnx_migrate.linen import lazy") < text.index("lazy(_net)")
    assert text.startswith("from package.models import Net as _net\n")
