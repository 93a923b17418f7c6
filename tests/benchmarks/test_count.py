from pathlib import Path

import pytest

from benchmarks.corpus.count import module_classes


def counted(tmp_path: Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return module_classes(tmp_path)


@pytest.mark.parametrize(
    "header",
    [
        "import flax.linen as nn\nBase = nn.Module",
        "from flax import linen\nBase = linen.Module",
        "from flax.linen import Module as Base",
        "import flax\nBase = flax.linen.Module",
        "import flax.linen\nBase = flax.linen.Module",
        "try:\n    from flax.linen import Module as Base\nexcept ImportError:\n    Base = object",
    ],
)
def test_a_class_counts_however_the_base_is_imported(tmp_path: Path, header: str) -> None:
    assert counted(tmp_path, {"a.py": f"{header}\nclass A(Base): pass\n"}) == ["a.py:A"]


def test_bases_are_followed_across_files_and_re_exports(tmp_path: Path) -> None:
    files = {
        "pkg/base.py": "import flax.linen as nn\nclass Root(nn.Module): pass\n",
        "pkg/__init__.py": "from .base import Root as Top\n",
        "pkg/deep/leaf.py": "from .. import Top\nclass Leaf(Top): pass\n",
        "user.py": "import pkg\nclass User(pkg.Top): pass\n",
    }
    found = counted(tmp_path, files)
    assert found == ["pkg/base.py:Root", "pkg/deep/leaf.py:Leaf", "user.py:User"]


def test_nested_and_local_classes_count_once_each(tmp_path: Path) -> None:
    text = (
        "from flax import linen as nn\n"
        "class A(nn.Module):\n"
        "    class B(nn.Dense): pass\n"
        "def make():\n"
        "    class C(nn.RNNCellBase): pass\n"
    )
    assert counted(tmp_path, {"a.py": text}) == ["a.py:A", "a.py:A.B", "a.py:make.<locals>.C"]


@pytest.mark.parametrize(
    "text",
    [
        "import torch.nn as nn\nclass A(nn.Module): pass\n",
        "from flax import nnx\nclass A(nnx.Module): pass\n",
        "class Module: pass\nclass A(Module): pass\n",
        "from flax import struct\nclass A(struct.PyTreeNode): pass\n",
        "import flax.linen as nn\nA = nn.scan(nn.Dense)\n",
        "import flax.linen as nn\nclass A(nn.Module:\n",
    ],
)
def test_other_classes_and_broken_files_do_not_count(tmp_path: Path, text: str) -> None:
    assert counted(tmp_path, {"a.py": text}) == []
