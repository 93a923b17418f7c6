"""Module, and the decorators and types that come with Linen modules.

``nn.Module`` as a base class, annotation or value becomes ``nnx.Module``. ``@nn.compact`` and
``@nn.nowrap`` go away with the conversion of their class: NNX methods are plain methods. Used any
other way they are refused. ``nn.Variable`` in an annotation is ``nnx.Variable``; what Linen code
does with one (``.value``) is the class conversion's business.

flax 0.12.8 and 0.12.12: linen/module.py, nnx/module.py.
"""

from __future__ import annotations

from nnx_migrate.constructs.common.base import Code, Context, Refusal, last, linen
from nnx_migrate.constructs.common.references import in_namespace, name
from nnx_migrate.constructs.common.rules import Construct, Example, NameRule

# Decorators that the class conversion removes.
REMOVED_DECORATORS = linen("compact", "nowrap")


def _decorator(symbol: str, context: Context) -> Code | Refusal:
    if context is Context.DECORATOR:
        return Code(None)
    found = last(symbol)
    return Refusal(
        f"nn.{found} used other than as a decorator", f"decorate the method with @nn.{found}"
    )


def _variable(symbol: str, context: Context) -> Code | Refusal:
    if context is Context.ANNOTATION:
        return name("nnx.Variable")
    return Refusal(
        "nn.Variable used as a value",
        "create an `nnx.Variable` of the collection's type, for example nnx.BatchStat(value)",
    )


CONSTRUCT = Construct(
    __doc__,
    rules=(
        NameRule(
            name="Module",
            symbols=linen("Module"),
            example=Example("class Block(nn.Module): ...", "class Block(nnx.Module): ..."),
            reference=in_namespace("nnx"),
        ),
        NameRule(
            name="decorators",
            symbols=REMOVED_DECORATORS,
            example=Example(
                "@nn.compact\ndef __call__(self, x): ...", "def __call__(self, x): ..."
            ),
            reference=_decorator,
        ),
        NameRule(
            name="Variable",
            symbols=linen("Variable"),
            example=Example("def f(v: nn.Variable): ...", "def f(v: nnx.Variable): ..."),
            reference=_variable,
        ),
    ),
    example="""
class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.relu(nn.Dense(self.width)(x))


class Model(nn.Module):
    def setup(self):
        self.blocks = [Block(8), Block(4)]

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return x

    @nn.nowrap
    def describe(self):
        return "two blocks"
""",
    inputs="jnp.ones((2, 8))",
)
