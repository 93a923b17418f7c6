"""Callers take a module by annotation and call it in Linen's way; who builds it may be out of sight."""

from __future__ import annotations

import pytest

from tests.rewrite.projects import dense
from tests.rewrite.test_forms import auto, reason, said

HEAD = "import dataclasses\n\nimport flax.linen as nn\n\n\n"
NET = dense("Net")
REASON = "its callers call Linen's methods on it"
CALLERS = {
    "a parameter": "def create(key, net: Net, x):\n    return net.init(key, x)\n",
    "a handle": "def apply_fn(net: Net):\n    return net.apply\n",
    "a field": "@dataclasses.dataclass\nclass Agent:\n    net: Net\n\n"
    "    def act(self, variables, x):\n        return self.net.apply(variables, x)\n",
}


@pytest.mark.parametrize("caller", CALLERS)
def test_a_class_that_nobody_builds_here_keeps_what_its_callers_call(caller: str) -> None:
    result = auto({"net.py": HEAD + NET + CALLERS[caller]})
    assert said(result)["net.Net"] == "lazy"
    assert REASON in reason(result, "net.Net")
    assert result.call_sites.refused == 0


@pytest.mark.parametrize("caller", CALLERS)
def test_a_class_that_is_built_here_is_explicit(caller: str) -> None:
    main = "\n\ndef main():\n    return Net()\n"
    result = auto({"net.py": HEAD + NET + CALLERS[caller] + main})
    assert said(result)["net.Net"] == "explicit"
    assert result.call_sites.refused == 0


def test_a_class_that_is_only_called_is_explicit() -> None:
    result = auto({"net.py": HEAD + NET + "def call(net: Net, x):\n    return net(x)\n"})
    assert said(result)["net.Net"] == "explicit"
