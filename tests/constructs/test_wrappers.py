"""Modules around modules: constructor calls before and after, and what is refused."""

from __future__ import annotations

import pytest

from tests.constructs.convert import refusal, text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nn.RNN(self.cell, name='r')", "nnm.RNN(self.cell)"),
        (
            "nn.RNN(nn.GRUCell(8))",
            "nnm.RNN(nnm.GRUCell(8, in_features=in_features, rngs=rngs))",
        ),
        (
            "nn.Sequential([nn.Dense(8), nn.relu])",
            "nnm.Sequential([nnx.Linear(in_features, 8, rngs=rngs), nnx.relu])",
        ),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.RNN()", "without 'cell'"),
        ("nn.RNN(nn.LSTMCell())", "without 'features'"),
        ("nn.Sequential()", "without 'layers'"),
        ("nn.Bidirectional(a)", "without 'backward_rnn'"),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason
