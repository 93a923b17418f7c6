"""Files of axis rules that tests write, and what is wrong with them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from nnx_migrate.sharding import AxisRulesError, load_axis_rules

HEAD = "mesh_axes: [data, model]\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "rules.yml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def faults(path: Path, **options: object) -> list[str]:
    """What is wrong with the file, without the path."""
    with pytest.raises(AxisRulesError) as caught:
        load_axis_rules(path, **options)  # type: ignore[arg-type]
    assert str(caught.value) == "\n".join(map(str, caught.value.findings))
    return [str(one).removeprefix(f"{path}:").strip() for one in caught.value.findings]
