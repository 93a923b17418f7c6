"""Fields that hold partials of classes: what those set is not the class's default."""

import pytest

from tests.rewrite.projects import LINEN
from tests.rewrite.running import printed_alike

HEAD = (
    "import functools\nfrom typing import Any, Type\n\nimport jax\nimport jax.numpy as jnp\n"
    + LINEN
    + "class Body(nn.Module):\n    widths: tuple[int, ...] = (4,)\n\n    @nn.compact\n"
    "    def __call__(self, x):\n        for width in self.widths:\n            x = nn.Dense(width)(x)\n"
    "        return x\n\n\nclass Net(nn.Module):\n    body: Type[nn.Module]\n\n    @nn.compact\n"
    "    def __call__(self, x):\n        {call}\n\n\n"
)
MAIN = (
    "def main():\n    {before}\n    net = {build}\n    x = jnp.ones((2, 3))\n"
    "    made = net.init(jax.random.key(0), x)\n    print(jax.tree.map(jnp.shape, made))\n"
    "    print(net.apply(jax.tree.map(lambda one: one + 1, made), x))\n"
)
AFTER = "x = self.body()(x)\n        return nn.Dense(2)(x)"
AROUND = "return nn.Dense(2)(self.body()(x))"
BUILDS = {
    "a partial by name": ("pass", "Net(functools.partial(Body, widths=(8, 8)))"),
    "a partial by place": ("pass", "Net(functools.partial(Body, (8, 8)))"),
    "a local partial": ("body = functools.partial(Body, widths=(8,))", "Net(body=body)"),
    "a partial of a partial": (
        "body = functools.partial(Body, widths=(8,))",
        "functools.partial(Net, functools.partial(body, name='body'))()",
    ),
    "an unpacked dict": ("kw = {'widths': (8,)}", "Net(functools.partial(Body, **kw))"),
}


@pytest.mark.parametrize("call", [AFTER, AROUND], ids=["behind", "around"])
@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_a_size_behind_a_partial_is_what_the_partial_says(
    build: tuple[str, str], call: str
) -> None:
    before, built = build
    source = HEAD.format(call=call) + MAIN.format(before=before, build=built)
    printed_alike(source)


def test_a_size_behind_a_class_is_its_default() -> None:
    source = HEAD.format(call=AFTER) + MAIN.format(before="pass", build="Net(Body)")
    assert printed_alike(source)["m.Net"] == "explicit"


def test_a_size_behind_a_partial_is_asked_of_what_it_builds() -> None:
    build = "Net(functools.partial(Body, widths=(8, 8)))"
    source = HEAD.format(call=AFTER) + MAIN.format(before="pass", build=build)
    assert printed_alike(source)["m.Net"] == "explicit"


def test_a_local_partial_that_a_partial_of_the_class_holds_is_explicit() -> None:
    before = (
        "body = functools.partial(Body, widths=(8,))\n    made = functools.partial(Net, body=body)"
    )
    source = HEAD.format(call=AROUND) + MAIN.format(before=before, build="made()")
    assert printed_alike(source)["m.Net"] == "explicit"
