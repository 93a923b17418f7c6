"""New imports stand where the order of the file's own wants them."""

from __future__ import annotations

import libcst as cst
import pytest

from nnx_migrate.rewrite.new_imports import in_order


def ordered(text: str, *new: str) -> str:
    module = cst.parse_module(text)
    added = [one for one in module.body if cst.Module([one]).code.rstrip().endswith(new)]
    assert len(added) == len(new)
    return in_order(module, added).code


NNM = "from nnx_migrate import nn as nnm"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (  # by module, as Google does
            f"from flax import nnx\n{NNM}\nimport jax\nimport numpy as np\nimport optax\n",
            f"from flax import nnx\nimport jax\n{NNM}\nimport numpy as np\nimport optax\n",
        ),
        (  # each kind for itself, as isort does
            f"import jax\nimport numpy as np\nfrom flax import nnx\n{NNM}\nfrom jax import lax\nfrom optax import adam\n",
            f"import jax\nimport numpy as np\nfrom flax import nnx\nfrom jax import lax\n{NNM}\nfrom optax import adam\n",
        ),
        (  # in its own block
            f"from flax import nnx\n{NNM}\nimport jax\n\nimport model\n",
            f"from flax import nnx\nimport jax\n{NNM}\n\nimport model\n",
        ),
    ],
)
def test_a_new_import_goes_where_the_order_has_it(before: str, after: str) -> None:
    assert ordered(before, NNM) == after


@pytest.mark.parametrize(
    "text",
    [
        f"import numpy as np\n{NNM}\nimport jax\n",  # in no order
        f"import abc\n# the tool's\n{NNM}\nimport jax\n",  # a comment above it
        f"{NNM}\nimport optax\n",  # nothing before it
        f"import jax\nx = 1\n{NNM}\n",  # code between
        f"from flax import nnx\n{NNM}\nfrom . import jax\n",  # relative ones have an order of their own
    ],
)
def test_a_new_import_stays_where_no_order_speaks(text: str) -> None:
    assert ordered(text, NNM) == text
