"""What a module would keep of its variables while calls change them.

Linen runs ``setup`` before every call: ``self.scaled = self.w * 2`` follows the parameter, and
``self.n = self.count.value`` is what the variable held when the call began. An explicit class has properties for what
``setup`` itself assigns. They follow a variable, also within a call; what a helper method assigns follows nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from nnx_migrate.rewrite.classes.checks.every_call import run_by_setup
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import receiver_of, self_call
from nnx_migrate.rewrite.classes.reading.attributes import Attribute, Kind
from nnx_migrate.rewrite.classes.setup.dependence import Dependence, bound, dependence_in
from nnx_migrate.source.bindings import bindings_below
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.walking import each, is_name, walk

RULE = "setup"


def check_stale_values(cls: ClassInfo, attributes: Iterable[Attribute]) -> None:
    """Refuse what is kept of a variable in a helper of ``setup``, or follows it within a call.

    Raises:
      Refused: an attribute would hold another value than in Linen.
    """
    setup = cls.methods.get("setup")
    if setup is None:
        return
    for node in _values_of_helpers(cls, dependence_in(cls, setup)):
        raise ClassRefused(
            node,
            "what this keeps follows a parameter or variable, and __init__ runs only once",
            "compute it in the method that reads it",
            RULE,
        )
    if not _changes_variables(cls, setup):
        return
    begun = Dependence(receiver_of(setup), makers=frozenset({"variable"}))
    dependence = dependence_in(cls, setup, begun)
    for one in attributes:
        if one.kind is Kind.COMPUTED and dependence.of(one.value):
            raise ClassRefused(
                one.statement,
                f"self.{one.name} is what a variable holds when the call begins, and calls change it",
                "read it in the method that is called",
                RULE,
            )


def _values_of_helpers(cls: ClassInfo, dependence: Dependence) -> Iterator[ast.AST]:
    """What methods that ``setup`` calls assign to attributes."""
    run = run_by_setup(cls)
    names = {name for method in run for name in _parameter_values(method, dependence.attributes)}
    for method in run[1:]:
        parameters = method.args.posonlyargs + method.args.args + method.args.kwonlyargs
        local = [one.arg for one in parameters] if method.name in names else []
        begun = replace(dependence, receiver=receiver_of(method), local=frozenset(local[1:]))
        own = dependence_in(cls, method, begun)
        for target, value in bindings_below(method):
            if bound(target, own.receiver)[1] and own.of(value):
                yield value
        for call in each(method, ast.Call):
            if is_name(call.func, "setattr"):
                yield from (one for one in call.args[2:] if own.of(one))


def _parameter_values(method: ast.FunctionDef, attributes: frozenset[str]) -> Iterator[str]:
    """Methods that a method gives what may follow a variable: any of its local names may."""
    receiver = receiver_of(method)
    local = frozenset(one.id for one in each(method, ast.Name)) - {receiver}
    dependence = Dependence(receiver, local, attributes)
    for call in each(method, ast.Call):
        name = self_call(call, receiver)
        values = chain(call.args, (one.value for one in call.keywords))
        if name is not None and any(map(dependence.of, values)):
            yield name


def _changes_variables(cls: ClassInfo, setup: ast.FunctionDef) -> bool:
    """Whether a method other than ``setup`` does: ``self.count.value = 1``, ``self.put_variable(...)``."""
    methods = [one for owner in cls.mro for one in owner.methods.values() if one is not setup]
    for node in chain.from_iterable(map(walk, methods)):
        match node:
            case ast.Attribute(attr="value", ctx=ast.Store()) | ast.Attribute(attr="put_variable"):
                return True
    return False
