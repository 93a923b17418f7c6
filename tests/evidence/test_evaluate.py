"""Sizes computed from recorded fields and inputs, without the user's code."""

from __future__ import annotations

from typing import Any

import pytest

from nnx_migrate.evidence.evaluate import Surroundings, Unknown, evaluate

CONFIG = {"$": "dataclass", "module": "m", "name": "Config", "fields": {"dim": 48, "heads": 6}}
FIELDS = {
    "$": "module",
    "module": "m",
    "name": "Net",
    "fields": {
        "features": 8,
        "ratio": 2.5,
        "out": None,
        "strides": {"$": "tuple", "items": [1, 2]},
        "cfg": CONFIG,
        "act": {"$": "text", "value": "gelu"},
        "secret": {"$": "withheld", "length": 12},
    },
}
BATCH = {"$": "dict", "items": [["ids", {"$": "array", "shape": [4, 9], "dtype": "int32"}]]}
AROUND = Surroundings(
    FIELDS,
    {"x": {"$": "array", "shape": [2, 5, 6], "dtype": "float32"}, "batch": BATCH},
    {"index": 2},
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("self.features * 2", 16),
        ("self.cfg.dim // self.cfg.heads", 8),
        ("self.strides[1]", 2),
        ("self.strides[-1]", 2),
        ("self.strides[1:]", (2,)),
        ("self.strides[:-1]", (1,)),
        ("(1, 2, 3)[::-2]", (3, 1)),
        ("[self.features, 2]", (8, 2)),
        ("len(self.strides)", 2),
        ("self.strides != (1, 1)", True),
        ("x.shape[-1] + index", 8),
        ("batch['ids'].shape[0]", 4),
        ("int(self.features * self.ratio)", 20),
        ("x.shape[-1] if self.out is None else self.out", 6),
        ("self.act == 'gelu' and self.features > 3", True),
        ("max(self.features, 10)", 10),
    ],
)
def test_what_an_expression_is_worth(text: str, value: Any) -> None:
    assert evaluate(text, AROUND) == value


@pytest.mark.parametrize(
    "text",
    [
        "self.missing",
        "self.secret",
        "self.cfg.missing",
        "y.shape[-1]",
        "x.shape[3]",
        "self.features // 0",
        "self.features ** 1000",
        "unknown",
        "open('/etc/passwd')",
        "self.features.__class__",
        "(lambda: 1)()",
    ],
)
def test_what_was_not_recorded_has_no_value(text: str) -> None:
    with pytest.raises(Unknown):
        evaluate(text, AROUND)
