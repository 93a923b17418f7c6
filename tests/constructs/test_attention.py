"""Attention: layers, functions and masks, and what is refused."""

from __future__ import annotations

import inspect

import jax
import pytest
from flax import linen, nnx

from tests.constructs.convert import refusal, text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "nn.SelfAttention(num_heads=4, decode=True, name='a')",
            "nnm.SelfAttention(num_heads=4, decode=True, in_features=in_features, rngs=rngs)",
        ),
        ("nn.make_causal_mask(x, dtype=bool)", "nnx.make_causal_mask(x, dtype=bool)"),
        ("nn.attention.dot_product_attention(q, k, v)", "nnm.dot_product_attention(q, k, v)"),
    ],
)
def test_a_use_is_rewritten(before: str, after: str) -> None:
    assert text(before) == after


@pytest.mark.parametrize(
    ("before", "sizes", "after"),
    [
        (
            "nn.MultiHeadAttention(4)",
            {"in_features": "q", "in_kv_features": "k"},
            "nnm.MultiHeadAttention(4, in_features=q, in_kv_features=k, rngs=rngs)",
        ),
        (
            "nn.MultiHeadAttention(4)",
            {"in_features": "q", "in_v_features": "v"},
            "nnm.MultiHeadAttention(4, in_features=q, in_v_features=v, rngs=rngs)",
        ),
    ],
)
def test_the_sizes_that_it_needs_are_passed(before: str, sizes: dict[str, str], after: str) -> None:
    assert text(before, sizes) == after


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("nn.SelfAttention(4, qkv_dot_general_cls=c)", "qkv_dot_general_cls"),
        ("nn.MultiHeadAttention()", "without 'num_heads'"),
    ],
)
def test_a_use_is_refused(before: str, reason: str) -> None:
    assert reason in refusal(before).reason


@pytest.mark.parametrize("before", ["nn.SelfAttention(4)"])
def test_an_unknown_size_is_refused(before: str) -> None:
    assert refusal(before, {}).reason.startswith("size unknown")


def test_combine_masks_computes_the_same_in_nnx() -> None:
    """Only the error differs: AssertionError in Linen, ValueError in NNX."""
    masks = (jax.numpy.ones((2, 3)), None, jax.numpy.eye(3)[:2])
    before, after = (jax.make_jaxpr(one.combine_masks)(*masks) for one in (linen, nnx))
    assert str(before) == str(after)


@pytest.mark.parametrize("name", ["make_attention_mask", "make_causal_mask"])
def test_mask_functions_have_the_same_code_in_nnx(name: str) -> None:
    before, after = (inspect.getsource(getattr(one, name)) for one in (linen, nnx))
    assert _code(before) == _code(after)


def _code(source: str) -> str:
    return "".join(source.split('"""')[::2]).replace(" ", "")
