"""What the rules of lifted module classes share: ``nn.scan(Class, ...)``, ``nn.vmap(Class, ...)``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from nnx_migrate.constructs.common.base import Code, Context, LayerCall, Refusal, bind, is_literal
from nnx_migrate.edit.calls import Argument
from nnx_migrate.edit.calls import call as made_call

ArgumentValues = Mapping[str, ast.expr]


def convert_lift(
    name: str,
    call: LayerCall,
    fields: tuple[str, ...],
    option_names: tuple[str, ...],
    refuse: Callable[[ArgumentValues], Refusal | None],
    extra: Callable[[ArgumentValues], Sequence[Argument]] = lambda _: (),
) -> Code | Refusal:
    """``nnm.<name>(Class, option=..., ...)`` with Linen's options as keywords.

    Args:
      fields: all parameters of Linen's function, in order.
      option_names: those that ``nnm.<name>`` takes besides the class.
      refuse: why the given arguments cannot be carried over.
      extra: more arguments.
    """
    arguments = bind(call.call, fields)
    if isinstance(arguments, Refusal):
        return arguments
    values = arguments.values
    if arguments.open or "target" not in values:
        reason = f"{name} whose arguments the call does not show"
        return Refusal(reason, "pass the class and options", call.call)
    methods = values.get("methods")
    if methods is not None and not is_literal(methods, None):
        return Refusal(
            f"{name} with methods=", "lift a class that has the method as its __call__", methods
        )
    refusal = refuse(values)
    if refusal is not None:
        return refusal
    return lift_call(f"nnm.{name}", call, values, option_names, extra(values))


def lift_call(
    function: str,
    call: LayerCall,
    values: ArgumentValues,
    option_names: tuple[str, ...],
    extra: Sequence[Argument] = (),
) -> Code:
    """``function(Class, option=..., ...)`` with those options that ``option_names`` lists."""
    source = call.source
    options = {one: values[one] for one in option_names if one in values}
    arguments = [source.argument(value, one) for one, value in options.items()]
    target = source.argument(values["target"])
    left = call.comments_without([values["target"], *options.values()])
    node = made_call(function, target, *arguments, *extra, left=left, unit=source.unit)
    return Code(node, frozenset({"nnm"}))


def no_named_class(name: str, values: ArgumentValues, recipe: str) -> Refusal | None:
    """The refusal of functions and lambdas in place of the class."""
    target = values["target"]
    if isinstance(target, ast.Name | ast.Attribute | ast.Call):
        return None
    return Refusal(f"{name} of something else than a named module class", recipe, target)


def is_shared(axes: ast.expr | None) -> bool:
    """Whether ``variable_axes`` surely stack nothing: they are left out, empty, or None for all."""
    if not isinstance(axes, ast.Dict):
        return axes is None
    values = zip(axes.keys, axes.values, strict=True)
    return all(key is not None and is_literal(axis, None) for key, axis in values)


def no_size(name: str, option: str, what: str, values: ArgumentValues) -> Refusal | None:
    """The refusal of stacked variables whose number the call does not say."""
    size = values.get(option)
    if size is not None and not is_literal(size, None):
        return None
    return Refusal(
        f"{name} that stacks variables without {option}=",
        f"pass the number of {what} as {option}=: NNX builds them before it sees the inputs",
        values["variable_axes"],
    )


def named_from_the_end(name: str, arguments: ArgumentValues) -> Refusal | None:
    """The refusal of stacks along an axis that is counted from the end, where axes have names.

    Linen names such an axis one place too early (flax 0.12.8, core/meta.py, ``Partitioned.add_axis``).
    """
    axes = arguments.get("variable_axes")
    values = axes.values if isinstance(axes, ast.Dict) else []
    is_counted = any(isinstance(one, ast.UnaryOp) for one in values)
    if not is_counted or "metadata_params" not in arguments:
        return None
    recipe = "count the axis from the front: Linen names an axis of -1 one place too early"
    return Refusal(f"{name} along an axis from the end, with its name", recipe, axes)


def other_metadata(name: str, values: ArgumentValues) -> Refusal | None:
    """The refusal of ``metadata_params`` that only boxes of the user's own classes read."""
    params = values.get("metadata_params")
    keys = params.keys if isinstance(params, ast.Dict) else []
    if all(key is not None and not isinstance(key, ast.Constant) for key in keys):
        return None
    recipe = "name the axis by nn.PARTITION_NAME alone"
    return Refusal(f"{name} with metadata_params of other keys", recipe, params)


def reference(symbol: str, context: Context) -> Code | Refusal:
    """A bare ``nn.scan`` is refused: what it will be called with is not known."""
    return Refusal(f"{symbol} used as a {context.value}", "call it with a module class")
