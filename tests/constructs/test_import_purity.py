"""Rules and renderer load without jax, flax or numpy."""

from __future__ import annotations

import subprocess
import sys


def test_loading_every_rule_imports_no_array_library() -> None:
    code = (
        "import sys; from nnx_migrate import constructs; from nnx_migrate.rewrite import engine; "
        "constructs.all_rules(); "
        "print(sorted({'jax', 'flax', 'numpy', 'libcst'} & sys.modules.keys()))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
