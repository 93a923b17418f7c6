"""Constructor arguments for facts of the initial call: which arguments it has, which flags are set.

In Linen the arguments of ``init`` decide what exists, in NNX the constructor does. Where a condition
on an argument decides what is built, the class gets a constructor argument that says what held in
Linen's initial call, and callers in the project pass it on.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.questions import given_when, is_none
from nnx_migrate.abstract.values import SPREAD, Argument, Static, Unknown, Use, Value
from nnx_migrate.model import FACT_PREFIXES, SizeArgument
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.source.names import defaults_of
from nnx_migrate.source.walking import each, names_in

METHOD = "__call__"


def fact_argument(name: str, call: ast.FunctionDef | None, used_names: set[str]) -> SizeArgument:
    """The constructor argument for a fact: ``with_c`` or ``init_train``."""
    fact = ex.fact_of(name)
    assert fact is not None
    parameter, _ = ex.input_of(name)
    text = f"{FACT_PREFIXES[fact]}_{parameter}"
    used = names_in(call) if call else set()
    while text in used_names | used:
        text = f"input_{text}"
    return SizeArgument(
        text,
        argument=parameter,
        axis=None,
        fact=fact,
        default=_default(call, parameter, fact) if call else None,
    )


def _default(call: ast.FunctionDef, parameter: str, fact: str) -> bool | None:
    """What holds in calls that leave the parameter out; None where the code does not say."""
    node = defaults_of(call.args).get(parameter)
    match node:
        case ast.Constant(value=value):
            return value is not None if fact == ex.GIVEN else bool(value)
        case _:
            return None


@dataclass(frozen=True)
class Unsure(Exception):
    """A fact that the calls of a submodule do not show, or on which they differ.

    ``by_default``: one of them has what holds where the argument is left out.
    """

    reason: str
    by_default: bool = False


def passed_fact(analysis: ClassAnalysis, argument: SizeArgument, uses: list[Use]) -> Expr | None:
    """What a caller passes for a fact of the class it builds; None to leave it out.

    Raises:
      Unsure: the calls do not show it.
    """
    calls = [use for use in uses if use.method == argument.method]
    if not calls:
        raise Unsure(f"no call shows the argument {argument.argument!r} of this submodule")
    default = ex.literal(argument.default)
    found: set[Expr | None] = set()
    unsure: list[Unsure] = []
    for use in calls:
        try:
            fact = _in_call(analysis, argument, use)
        except Unsure as one:
            unsure.append(one)
        else:
            found.add(None if fact == default else fact)
    by_default = None in found or any(one.by_default for one in unsure)
    if unsure:
        raise Unsure(unsure[0].reason, by_default)
    if len(found) > 1:
        reason = f"the calls of this submodule differ in their argument {argument.argument!r}"
        raise Unsure(reason, by_default)
    return found.pop()


def _in_call(analysis: ClassAnalysis, argument: SizeArgument, use: Use) -> Expr | None:
    value = use.arguments.get(argument.argument or "", use.arguments.get(SPREAD))
    if value is None and argument.default is not None:
        return None
    found = _fact(value, argument.fact or "") if value is not None else None
    if found is None:
        raise Unsure(_unknown(argument), _is_first_default(value, argument))
    own = {ex.input_of(name)[0] for name in found.names if ex.fact_of(name)}
    is_unpassed = not own.isdisjoint(analysis.interpreter.extras.unpassable_facts)
    method = analysis.root.info.find(METHOD)
    names = {one.arg for one in each(method[1].args, ast.arg)} if method else set()
    if is_unpassed:
        raise Unsure(_unknown(argument), by_default=True)
    if not own <= names or (own and not use.primary):
        raise Unsure(_unknown(argument))
    return found


def _is_first_default(value: Value | None, argument: SizeArgument) -> bool:
    """Whether the first round of a loop has what holds where the argument is left out."""
    first = value.first if isinstance(value, Unknown) else None
    known = _fact(first, argument.fact or "") if first is not None else None
    return known is not None and known == ex.literal(argument.default)


def _unknown(argument: SizeArgument) -> str:
    what = "is given" if argument.fact == ex.GIVEN else "is true"
    return f"whether the argument {argument.argument!r} of this submodule {what} is not known here"


def _fact(value: Value, fact: str) -> Expr | None:
    """A fact of an argument as the caller passes it."""
    if isinstance(value, Argument) and not (fact == ex.GIVEN and value.present):
        return ex.call_fact(value.path, fact) if value.path.isidentifier() else None
    if fact == ex.GIVEN:
        return _is_given(value)
    if not isinstance(value, Static):
        return None
    return ex.literal(bool(value.expr.constant)) if value.expr.is_constant else value.expr


def _is_given(value: Value) -> Expr | None:
    known = is_none(value)
    if known is not None:
        return ex.literal(not known)
    if isinstance(value, Static):
        return Expr(ast.Compare(value.expr.node, [ast.IsNot()], [ast.Constant(None)]))
    return given_when(value)
