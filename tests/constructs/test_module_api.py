"""Linen's own methods on ``self`` and on submodules: what they become, and that it computes the same."""

from __future__ import annotations

import textwrap

import jax
import jax.numpy as jnp
import pytest

from tests.rewrite.classes.stepping import same_steps
from tests.rewrite.classes.support import converted, refusal

WIDTH = {"in_features": 6}


def model(*body: str, before: str = "", fields: str = "") -> str:
    """Class ``M`` with a compact ``__call__(self, x)``."""
    lines = textwrap.indent("\n".join(body), " " * 8)
    return (
        f"{before}\nclass M(nn.Module):\n{textwrap.indent(fields, '    ')}\n"
        f"    @nn.compact\n    def __call__(self, x):\n{lines}\n"
    )


COUNTER = 'count = self.variable("state", "count", lambda: jnp.zeros(()))'
PERTURBED = model(
    "y = self.perturb('before', nn.Dense(6)(x))",
    "return nn.Dense(3)(self.perturb('after', 4 * y))",
)
GRADS = model(
    "y = nn.Dense(6)(x)",
    "if self.is_mutable_collection('grads'):",
    "    y = y + self.variable('grads', 'y', lambda: jnp.zeros_like(y)).value",
    "return y",
)
GUARDED = model(
    COUNTER,
    "if self.is_mutable_collection('state'):",
    "    count.value += 1",
    "return nn.Dense(6)(x) * count.value",
)


@pytest.mark.parametrize(
    ("source", "sizes", "mutable"),
    [
        (
            model(
                "a = self.param('a', nn.initializers.normal(), (1, 6))",
                "return x * self.get_variable('params', 'a') + self.get_variable('state', 'b', 2.0)",
            ),
            {},
            (),
        ),
        (
            model(
                COUNTER,
                "self.put_variable('state', 'count', count.value + 1)",
                "return x * self.get_variable('state', 'count')",
            ),
            {},
            ("state",),
        ),
        (
            model(
                "self.put_variable('state', 'last', x)",
                "return x + self.has_variable('state', 'last')",
            ),
            {},
            ("state",),
        ),
        (PERTURBED, WIDTH, ()),
        (PERTURBED, WIDTH, ("perturbations",)),
        (GRADS, WIDTH, ()),
        (GRADS, WIDTH, ("grads",)),
        (GUARDED, WIDTH, ()),
        (GUARDED, WIDTH, ("state",)),
        (
            model(
                "y = nn.Dense(6, name='d')(x)",
                "tree = self.variables['params']['d']",
                "return y @ tree['kernel'].T + tree['bias'].sum()",
            ),
            WIDTH,
            (),
        ),
        (
            model(
                "y = nn.Dense(6, name='scale')(x)",
                "return y, self.variables['params']['scale']['bias'] + 1",
            ),
            WIDTH,
            (),
        ),
        (
            model(
                "y = nn.Dense(6, name='scale')(x)",
                "tree = self.variables['params']['scale']",
                "return y, sum((p**2).sum() for p in jax.tree.leaves(tree))",
            ),
            WIDTH,
            (),
        ),
        (
            model(
                "w = self.param('w', nn.initializers.normal(), (6,))",
                "return x @ nn.Dense(6)(x).T @ (self.variables['params']['w'] * w)[: x.shape[0]]",
            ),
            WIDTH,
            (),
        ),
        (
            model(
                "y = nn.Dense(6, name='d')(x)",
                "tree = self.variables['params']",
                "return y, sum((p**2).sum() for p in jax.tree.leaves(tree))",
            ),
            WIDTH,
            (),
        ),
    ],
)
def test_state_is_linens_for_two_steps(
    source: str, sizes: dict[str, int], mutable: tuple[str, ...]
) -> None:
    same_steps(source, sizes=sizes, mutable=mutable)


def test_perturbations_take_the_gradients_of_activations() -> None:
    values = same_steps(PERTURBED, sizes=WIDTH, mutable=("perturbations",))
    assert values["perturbations"]["before"].shape == (3, 6)


SOWN = model(
    "y = nn.Dense(6)(x)",
    "self.sow('losses', 'l2', (y**2).sum(), init_fn=lambda: 0.0, reduce_fn=lambda a, b: a + b)",
    "return y",
)
SCANNED = """
class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        y = nn.Dense(6)(x)
        self.sow("losses", "positive", jnp.sum(y > 0.0, dtype=y.dtype))  # exact, however compiled
        return y, None


class M(nn.Module):
    @nn.compact
    def __call__(self, x):
        axes = {"params": 0, "losses": 0}
        Layers = nn.scan(Block, variable_axes=axes, split_rngs={"params": True}, length=3)
        return Layers(name="layers")(x, None)[0]
"""
SHARED = """
class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.Dense(6)(x)
        self.sow("losses", "l2", (y**2).sum())
        return y


class M(nn.Module):
    @nn.compact
    def __call__(self, x):
        block = Block()
        return block(block(x))
"""


@pytest.mark.parametrize("source", [SOWN, SCANNED, SHARED])
def test_sown_losses_go_on_from_those_that_are_given(source: str) -> None:
    values = same_steps(source, sizes=WIDTH, mutable=("losses",))
    assert all(jnp.all(one != 0) for one in jax.tree.leaves(values["losses"]))


def test_the_initial_call_asks_whether_it_is_one() -> None:
    source = model(
        "mean = self.variable('batch_stats', 'mean', lambda: jnp.zeros_like(x))",
        "if not self.is_initializing():",
        "    mean.value = 0.9 * mean.value + 0.1 * x",
        "return x - mean.value",
    )
    assert "if not nnm.is_initializing():" in converted(source)
    same_steps(source, mutable=("batch_stats",))


def test_a_class_whose_calls_make_nothing_asks_whether_init_runs() -> None:
    source = model("if self.is_initializing():", "    return x", "return nn.Dense(6, name='d')(x)")
    assert "if nnm.is_initializing():" in converted(source)


def test_a_submodule_is_asked_for_its_variables() -> None:
    source = model(
        "dense = nn.Dense(6)",
        "y = dense(x)",
        "return y, dense.has_variable('params', 'kernel'), dense.variables['params']",
    )
    text = converted(source)
    assert "nnm.has_variable(dense, 'params', 'kernel')" in text
    assert "nnm.variables_of(dense)['params']" in text


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        ("dense.clone()(x)", "dense.clone has no NNX counterpart"),
        ("dense.unbind()[0].apply({}, x)", "dense.unbind has no NNX counterpart"),
        ("dense.apply({'params': {}}, x)", "dense.apply has no NNX counterpart"),
        ("dense.bind({})(x)", "dense.bind has no NNX counterpart"),
        ("dense.init(jax.random.key(0), x)", "dense.init has no NNX counterpart"),
        ("dense.name", "dense.name has no NNX counterpart"),
        ("dense.path", "dense.path has no NNX counterpart"),
        ("dense.scope", "dense.scope has no NNX counterpart"),
        ("dense.param('p', jnp.ones, (3,))", "dense.param has no NNX counterpart"),
        ("dense.make_rng('noise')", "dense.make_rng has no NNX counterpart"),
        ("self.has_rng('dropout')", "self.has_rng has no NNX counterpart"),
        ("self.name", "self.name has no NNX counterpart"),
        ("self.path", "self.path has no NNX counterpart"),
        ("jnp.sum(self.param)", "self.param is handed on"),
        ("jax.tree.map(self.make_rng, x)", "self.make_rng is handed on"),
        ("log(self.sow, x)", "self.sow is handed on"),
        ("self.is_mutable_collection(str(x.dtype))", "neither a string nor a field"),
    ],
)
def test_what_linen_alone_has_is_refused(use: str, reason: str) -> None:
    found = refusal(model("dense = nn.Dense(6)", "y = dense(x)", f"return y, {use}"))
    assert reason in found.reason
    assert found.rule == "module-api"


@pytest.mark.parametrize(
    "use",
    [
        *("repr(self)", "str(self)", "f'{self}'", "f'{self!r}'", "len(str(self))"),
        *("hash(self)", "format(self, '')", "ascii(self)"),
    ],
)
def test_the_text_of_the_module_is_no_value(use: str) -> None:
    found = refusal(model("y = nn.Dense(6)(x)", f"return y, {use}"))
    assert "of the module itself" in found.reason


@pytest.mark.parametrize(
    "line",
    ["print(self)", "logging.info(f'{self}')", "raise ValueError(f'{self}')", "str(self.scale)"],
)
def test_the_text_of_the_module_may_be_told(line: str) -> None:
    source = model(
        f"if self.scale > 9:\n    {line}", "return x * self.scale", fields="scale: int = 2"
    )
    assert line in converted(source)


def test_the_text_of_the_module_is_a_value_where_the_class_writes_it() -> None:
    source = model("return nn.Dense(6)(x), repr(self)")
    assert "repr(self)" in converted(f"{source}\n    def __repr__(self):\n        return 'M'\n")


def test_a_variable_that_was_just_made_is_not_asked_for() -> None:
    source = model(
        COUNTER, "if self.has_variable('state', 'count'):", "    x = nn.Dense(6)(x)", "return x"
    )
    assert "made before" in refusal(source).reason


def test_names_of_the_class_shadow_linens() -> None:
    text = converted(
        """
        class Child(nn.Module):
            name_of: str = "child"

            def clone(self):
                return self

            @nn.compact
            def __call__(self, x):
                return nn.Dense(6)(x)


        class M(nn.Module):
            @nn.compact
            def __call__(self, x):
                child = Child()
                return child.clone()(x)
        """
    )
    assert "child.clone()(x)" in text


def test_a_name_that_may_hold_an_array_is_left_alone() -> None:
    source = model("y = nn.Dense(6)", "y = y(x)", "return y.copy()")
    assert "return y.copy()" in converted(source)


RECURRENT = """\
class Cell(nn.RNNCellBase):
    @nn.compact
    def __call__(self, carry, x):
        self.sow("losses", "carry", carry.mean())
        carry = nn.tanh(nn.Dense(6)(x) + carry)
        return carry, carry

    @nn.nowrap
    def initialize_carry(self, rng, input_shape):
        return jnp.zeros((*input_shape[:-1], 6))

    @property
    def num_feature_axes(self):
        return 1


class M(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.BatchNorm(use_running_average=False)(nn.RNN(nn.GRUCell(6))(x[None])[0])
        self.sow("losses", "x", x.mean())
        return nn.RNN(Cell())(x[None])
"""


def test_a_recurrent_loop_collects_nothing_that_it_does_not_lift() -> None:
    sizes = dict.fromkeys(("x_features", "BatchNorm_0_in_features", "Cell_0_x_features"), 6)
    kinds = ("batch_stats", "losses", "intermediates")
    values = same_steps(RECURRENT, sizes=sizes, mutable=kinds)
    assert set(values["losses"]) == {"x"}


@pytest.mark.parametrize("source", [SOWN, SCANNED, SHARED])
def test_sown_losses_that_are_given_and_not_mutable_stay(source: str) -> None:
    values = same_steps(source, sizes=WIDTH)
    assert values["losses"]
