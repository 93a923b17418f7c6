"""What the rules of lifted module classes share: ``nn.scan(Class, ...)``, ``nn.vmap(Class, ...)``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from nnx_migrate.constructs.common.base import Code, Context, LayerCall, Refusal, bind, is_literal
from nnx_migrate.edit.calls import Argument
from nnx_migrate.edit.calls import call as made_call

Given = Mapping[str, ast.expr]


def convert_lift(
    name: str,
    call: LayerCall,
    fields: tuple[str, ...],
    kept: tuple[str, ...],
    unsupported: Callable[[Given], Refusal | None],
    extra: Callable[[Given], Sequence[Argument]] = lambda _: (),
) -> Code | Refusal:
    """``nnm.<name>(Class, option=..., ...)`` with Linen's options as keywords.

    Args:
      fields: all parameters of Linen's function, in order.
      kept: those that ``nnm.<name>`` takes besides the class.
      unsupported: why the given arguments cannot be carried over.
      extra: more arguments.
    """
    arguments = bind(call.call, fields)
    if isinstance(arguments, Refusal):
        return arguments
    given = arguments.given
    if arguments.open or "target" not in given:
        reason = f"{name} whose arguments the call does not show"
        return Refusal(reason, "pass the class and options", call.call)
    methods = given.get("methods")
    if methods is not None and not is_literal(methods, None):
        return Refusal(
            f"{name} with methods=", "lift a class that has the method as its __call__", methods
        )
    refusal = unsupported(given)
    if refusal is not None:
        return refusal
    return lifted(f"nnm.{name}", call, given, kept, extra(given))


def lifted(
    function: str,
    call: LayerCall,
    given: Given,
    kept: tuple[str, ...],
    extra: Sequence[Argument] = (),
) -> Code:
    """``function(Class, option=..., ...)`` with the options that are ``kept``."""
    source = call.source
    options = {one: given[one] for one in kept if one in given}
    arguments = [source.argument(value, one) for one, value in options.items()]
    target = source.argument(given["target"])
    left = call.left([given["target"], *options.values()])
    node = made_call(function, target, *arguments, *extra, left=left, unit=source.unit)
    return Code(node, frozenset({"nnm"}))


def no_named_class(name: str, given: Given, recipe: str) -> Refusal | None:
    """The refusal of functions and lambdas in place of the class."""
    target = given["target"]
    if isinstance(target, ast.Name | ast.Attribute | ast.Call):
        return None
    return Refusal(f"{name} of something else than a named module class", recipe, target)


def is_shared(axes: ast.expr | None) -> bool:
    """Whether ``variable_axes`` surely stack nothing: they are left out, empty, or None for all."""
    if not isinstance(axes, ast.Dict):
        return axes is None
    values = zip(axes.keys, axes.values, strict=True)
    return all(key is not None and is_literal(axis, None) for key, axis in values)


def no_size(name: str, option: str, what: str, given: Given) -> Refusal | None:
    """The refusal of stacked variables whose number the call does not say."""
    size = given.get(option)
    if size is not None and not is_literal(size, None):
        return None
    return Refusal(
        f"{name} that stacks variables without {option}=",
        f"pass the number of {what} as {option}=: NNX builds them before it sees the inputs",
        given["variable_axes"],
    )


def named_from_the_end(name: str, given: Given) -> Refusal | None:
    """The refusal of stacks along an axis that is counted from the end, where axes have names.

    Linen names such an axis one place too early (flax 0.12.8, core/meta.py, ``Partitioned.add_axis``).
    """
    axes = given.get("variable_axes")
    values = axes.values if isinstance(axes, ast.Dict) else []
    is_counted = any(isinstance(one, ast.UnaryOp) for one in values)
    if not is_counted or "metadata_params" not in given:
        return None
    recipe = "count the axis from the front: Linen names an axis of -1 one place too early"
    return Refusal(f"{name} along an axis from the end, with its name", recipe, axes)


def other_metadata(name: str, given: Given) -> Refusal | None:
    """The refusal of ``metadata_params`` that only boxes of the user's own classes read."""
    params = given.get("metadata_params")
    keys = params.keys if isinstance(params, ast.Dict) else []
    if all(key is not None and not isinstance(key, ast.Constant) for key in keys):
        return None
    recipe = "name the axis by nn.PARTITION_NAME alone"
    return Refusal(f"{name} with metadata_params of other keys", recipe, params)


def reference(symbol: str, context: Context) -> Code | Refusal:
    """A bare ``nn.scan`` is refused: what it will be called with is not known."""
    return Refusal(f"{symbol} used as a {context.value}", "call it with a module class")
