"""Submodules of ``setup`` that only some calls reach: Linen's ``init`` makes what its call reaches."""

from __future__ import annotations

import pytest

from nnx_migrate.model import RewriteResult
from nnx_migrate.rewrite.forms import rewrite_in
from nnx_migrate.rewrite.request import RewriteRequest
from tests.rewrite.projects import LINEN, ROOT, source

HEAD = """\
class Head(nn.Module):
    def setup(self):
        self.dense = nn.Dense(3)

    def __call__(self, x, shared=None):
"""
REACHED_BY_ANOTHER = {
    "a parameter handed in": (
        "        if shared is not None:\n            return x @ shared\n        return self.dense(x)\n"
    ),
    "under the opposite condition": (
        "        if shared is None:\n            x = self.dense(x)\n        return x\n"
    ),
    "a flag": "        if shared:\n            x = self.dense(x)\n        return x\n",
}
REACHED_BY_ITSELF = {
    "always": "        return self.dense(x)\n",
    "where its input is given": (
        "        if shared is not None:\n            x = x + self.dense(shared)\n        return x\n"
    ),
    "in all branches": (
        "        if shared is not None:\n            return self.dense(x) @ shared\n"
        "        return self.dense(x)\n"
    ),
}


def form(body: str) -> str:
    return _only(
        rewrite_in(RewriteRequest(ROOT, (source("m.py", LINEN + HEAD + body),), (), base=ROOT))
    )


def _only(result: RewriteResult) -> str:
    (one,) = result.classes
    assert one.form is not None
    return one.form.value


@pytest.mark.parametrize("body", REACHED_BY_ANOTHER.values(), ids=REACHED_BY_ANOTHER)
def test_what_another_argument_decides_is_lazy(body: str) -> None:
    assert form(body) == "lazy"


@pytest.mark.parametrize("body", REACHED_BY_ITSELF.values(), ids=REACHED_BY_ITSELF)
def test_what_every_call_or_the_input_itself_reaches_is_explicit(body: str) -> None:
    assert form(body) == "explicit"
