"""Random streams whose names fields give."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from tests.rewrite.classes.support import converted, loaded, refusal

DROP = """\
class M(nn.Module):
    rate: float = 0.5
    stream: str = "drop_path"

    @nn.compact
    def __call__(self, x, train=True):
        if not train:
            return x
        {body}
        return x * jax.random.bernoulli(key, 1 - self.rate, x.shape)
"""


@pytest.mark.parametrize("stream", ["drop_path", "dropout", "params"])
def test_a_stream_has_the_name_that_a_field_gives(stream: str) -> None:
    source = DROP.format(body="key = self.make_rng(self.stream)")
    text = converted(source)
    assert "self.stream_rng = nnm.stream(rngs, self.stream)" in text
    x, keys = jnp.ones((2, 9)), {stream: jax.random.key(3)}
    with loaded(source, "names_before") as before, loaded(text, "names_after") as after:
        expected = before.M(stream=stream).apply({}, x, rngs=keys)
        made = after.M(stream=stream, rngs=after.nnx.Rngs(0))
        assert (after.nnm.apply(made, {}, x, rngs=keys) == expected).all()


@pytest.mark.parametrize(
    "body",
    [
        'key = jax.random.fold_in(self.make_rng(self.stream), self.make_rng("dropout")[0])',
        'key = jax.random.fold_in(self.make_rng("dropout"), self.make_rng(self.stream)[0])',
        'key, x = self.make_rng(self.stream), x * self.param("a", nn.initializers.ones, (9,))',
        "key = self.make_rng(self.stream + str(1))",
    ],
)
def test_one_that_may_be_drawn_from_elsewhere_is_refused(body: str) -> None:
    assert "random stream is computed" in refusal(DROP.format(body=body)).reason


def test_a_field_that_the_class_sets_names_no_stream() -> None:
    source = DROP.format(body="key = self.make_rng(self.stream)").replace(
        "    @nn.compact",
        "    def __post_init__(self):\n        self.stream += '_1'\n        super().__post_init__()\n\n    @nn.compact",
    )
    assert "random stream is computed" in refusal(source).reason


def test_a_field_with_the_name_of_a_method_of_modules_gives_an_initialiser() -> None:
    text = converted(
        "class M(nn.Module):\n    init: Callable = nn.initializers.ones\n\n    @nn.compact\n"
        "    def __call__(self, x):\n        return x * self.param('a', self.init, (9,))\n"
    )
    assert "nnx.Param(self.init(rngs.params(), (9,)))" in text
