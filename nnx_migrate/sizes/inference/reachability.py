"""Conditions over fields under which Linen's initial call reaches a submodule."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.abstract.questions import held_modules
from nnx_migrate.abstract.values import Instance, Submodule, Use
from nnx_migrate.sizes.expressions.conditions import HAS
from nnx_migrate.sizes.inference.class_analysis import INPUT, ClassAnalysis
from nnx_migrate.sizes.inference.module_arguments import makes_variables
from nnx_migrate.sizes.inference.paired_rounds import is_read_as_filled
from nnx_migrate.sizes.inference.places import place_of
from nnx_migrate.sizes.initial_call import is_constructible
from nnx_migrate.sizes.result import Elsewhere, Untold
from nnx_migrate.source.walking import each, walk

Way = tuple[Expr | None, ...]  # conditions that all hold, each once; None: nobody knows which


def reach_condition(uses: list[Use]) -> str | None:
    """Condition over fields under which the uses happen; None when there is none.

    Nor is there one where a condition is over more: sizes, arguments of the call, variables of loops.
    A part of the conditions would say that what is built there is built more often.
    """
    if any(one is None or one.names for use in uses for one in use.conditions):
        return None
    return text_of(simplest([(*dict.fromkeys(use.conditions),) for use in uses]))


def ways(uses: list[Use]) -> list[Way]:
    """The conditions under which each use happens, in the fewest words."""
    return simplest([(*dict.fromkeys((*use.conditions, *use.rounds)),) for use in uses])


def rounds_of(uses: list[Use]) -> str | None:
    """Condition over fields without which no loop around a use has a round; None when there is none."""
    return text_of(simplest([use.rounds for use in uses]))


def text_of(ways: list[Way]) -> str | None:
    """``a and b or c`` for the ways (a, b) and (c,); None where one of them is always open."""
    if not ways or () in ways:
        return None
    nodes = [_join(ast.And(), [one.node for one in way if one is not None]) for way in ways]
    return ast.unparse(_join(ast.Or(), nodes))


def _join(op: ast.boolop, nodes: list[ast.expr]) -> ast.expr:
    return nodes[0] if len(nodes) == 1 else ast.BoolOp(op, nodes)


def simplest(ways: list[Way]) -> list[Way]:
    """The ways without those that another one covers: (a, b) beside (a,), (a, not b) and (a, b).

    ``if c: f(x)`` and ``if not c: f(y)`` are one way without a condition.
    """
    ways = list({frozenset(way): way for way in ways}.values())
    for one, other in combinations(ways, 2):
        both = frozenset(one) ^ frozenset(other)
        if len(both) == 2 and None not in both:
            left, right = (part for part in both if part is not None)
            if ex.negation(left) == right or ex.negation(right) == left:
                common = tuple(part for part in one if part not in both)
                return simplest([way for way in ways if way not in (one, other)] + [common])
    return [way for way in ways if not any(frozenset(one) < frozenset(way) for one in ways)]


# ---- under which conditions Linen's initial call reaches a submodule that ``setup`` builds
# Linen makes the variables of such a submodule when it is first called, NNX when it is built. So
# ``__init__`` builds what the initial call reaches: the conditions around its calls move there, over
# fields, over sizes (``if x.shape != y.shape``) and over what the constructor is told about the
# arguments of that call (``if c is not None``).

_OPEN = "whether the initial call reaches it hangs on more than fields, sizes and which arguments it has"
ELSEWHERE = "__call__ never reaches it: Linen's init through __call__ makes no parameters for it"


def is_in_setup(analysis: ClassAnalysis, call: ast.Call) -> bool:
    """Whether ``setup`` builds it: in a compact method the conditions stand around it already."""
    found = analysis.root.info.find("setup")
    return found is not None and any(one is call for one in walk(found[1]))


def reached_in_setup(
    analysis: ClassAnalysis,
    module: Submodule | Instance,
    uses: list[Use],
    sizes: Mapping[str, str],
) -> str | None:
    """The condition under which ``__init__`` builds a submodule; None: always, or if it has its sizes.

    Where the constructor cannot test it, that is noted in the analysis: it may be told more, or the
    class is refused.
    """
    if not makes_variables(analysis, module):
        return None
    if not any(use.primary for use in uses):
        return _unreachable_site(analysis, module, uses)
    paths = {ex.input_of(name)[0] for text in sizes.values() for name in INPUT.findall(text)}
    sized = set(map(ex.parameter_of, paths))
    if not _agree_on_rounds(analysis, module, uses):
        analysis.lazy.add(id(module.call))
        uses = _without_rounds(uses)
    found = _ways_to(analysis, module, uses)
    if not _are_known(analysis, found, sized):
        _note_open(analysis, module, found, sized)
        return None
    if () not in found and _is_read_elsewhere(analysis, module, uses, found):
        found = _read_elsewhere(analysis, module, uses, found)
    if () in found or all(_is_size_given(analysis, way, sized) for way in found):
        return None
    conditions = [one for way in found for one in way if one is not None]
    read = {name for one in conditions for name in one.names if ex.fact_of(name) is None}
    analysis.required_sizes.update(read)
    return text_of(found)


def _is_read_elsewhere(
    analysis: ClassAnalysis, module: Submodule | Instance, uses: list[Use], ways: list[Way]
) -> bool:
    """Whether the initial call reads an attribute that holds it where it is not built.

    What is only applied to parameters stands there as a layer without any (``nnm.Unbound``).
    """
    if id(module.call) in analysis.interpreter.applied_layers:
        return False
    reads = [one for one in analysis.interpreter.reads if one.module.call is module.call]
    both = _ways_to(analysis, module, [*uses, *(one for one in reads if one.primary)])
    return set(map(frozenset, both)) != set(map(frozenset, ways))


def _read_elsewhere(
    analysis: ClassAnalysis, module: Submodule | Instance, uses: list[Use], ways: list[Way]
) -> list[Way]:
    """The ways to a submodule whose attribute is read where the initial call does not reach it.

    One that only loops without a round keep from being built is None then. Of a list of such ones it is
    not asked whether there are rounds.
    """
    assert module.call is not None
    uses = _without_rounds(uses)
    reached_anyway = _ways_to(analysis, module, uses)
    if () not in reached_anyway and _is_read_elsewhere(analysis, module, uses, reached_anyway):
        analysis.lazy.add(id(module.call))
    elif () in reached_anyway and _is_stored(analysis, module.call):
        analysis.absent.add(id(module.call))
        return ways
    analysis.lazy.add(id(module.call))
    return reached_anyway


def _without_rounds(uses: list[Use]) -> list[Use]:
    return [replace(use, rounds=()) for use in uses]


def _agree_on_rounds(
    analysis: ClassAnalysis, module: Submodule | Instance, uses: list[Use]
) -> bool:
    """Whether all that one statement builds is called in the same loops: one test stands around it."""
    interpreter, call = analysis.interpreter, module.call
    assert call is not None
    rounds = rounds_of([use for use in uses if use.primary])
    if rounds is None and not any(use.rounds for use in uses):
        return True
    above = analysis.root.info.above(call)
    statement = next((one for one in above if isinstance(one, ast.stmt)), None)
    if statement is None:  # a function of another file builds it
        return False
    built = [interpreter.submodules.get(id(one)) for one in each(statement, ast.Call)]
    others = [one for one in built if one is not None and one.call is not call]
    return all(
        rounds_of([use for use in analysis.root.records.get(id(one.call), []) if use.primary])
        == rounds
        for one in others
        if makes_variables(analysis, one)
    )


def _is_stored(analysis: ClassAnalysis, call: ast.Call) -> bool:
    """Whether a statement stores nothing but what the call builds: ``self.a = Block()``."""
    match analysis.root.info.above(call):
        case [ast.Assign(targets=[ast.Attribute()]), *_]:
            return True
    return False


def _unreachable_site(
    analysis: ClassAnalysis,
    module: Submodule | Instance,
    uses: list[Use],
) -> str | None:
    """What becomes of a submodule that the initial call does not reach: Linen makes it no variables.

    One that another method always reaches may be what the class's builders all call.
    """
    assert module.call is not None
    methods = frozenset(use.entry for use in uses if not use.conditions)
    if methods:
        analysis.elsewhere.append(Elsewhere(module.call, methods))
    elif uses:
        analysis.lazy.add(id(module.call))
    elif not is_read_as_filled(analysis.root.info, module.call):
        note_unseen(analysis, module)
    return None


def note_unseen(analysis: ClassAnalysis, module: Submodule | Instance) -> None:
    """Leave a submodule to its first call that nothing is seen to call: Linen makes it no variables."""
    assert module.call is not None
    if (
        makes_variables(analysis, module)
        and id(module.call) not in analysis.interpreter.applied_layers
    ):
        analysis.lazy.add(id(module.call))


def note_handed_on(analysis: ClassAnalysis, module: Submodule | Instance, uses: list[Use]) -> None:
    """Leave a submodule to its first call that a compact method hands to one that does not call it whenever it is called.

    ``Block(inner=nn.Dense(4), deep=self.deep)(x)``, where Block calls ``inner`` only if it is ``deep``: the
    condition stands in another class than what builds.
    """
    assert module.call is not None
    found = [frozenset(way) for way in ways(uses)]
    if not found or frozenset() in found:  # always called: to look for who holds it costs
        return
    holders = [
        one
        for one in analysis.interpreter.submodules.values()
        if isinstance(one, Instance)
        and any(
            one_held is module for field in one.fields.values() for one_held in held_modules(field)
        )
    ]
    records = analysis.root.records
    needed_ways = [way for one in holders for way in ways(records.get(id(one.call), []))]
    is_called = all(any(one <= {*way} for one in found) for way in needed_ways)
    if not is_called and makes_variables(analysis, module):
        analysis.lazy.add(id(module.call))


def _note_open(
    analysis: ClassAnalysis, module: Submodule | Instance, ways: list[Way], size_arguments: set[str]
) -> None:
    """Note a submodule of which ``__init__`` does not know the conditions; told more, it may know them.

    What is never known decides the first call.
    """
    assert module.call is not None
    if facts := _missing_facts(analysis, ways, size_arguments):
        analysis.untold.append(Untold(module.call, _OPEN, facts))
    else:
        analysis.lazy.add(id(module.call))


def _missing_facts(
    analysis: ClassAnalysis, ways: list[Way], size_arguments: set[str]
) -> frozenset[str]:
    """The parameters about which the constructor has to be told more; any, where nobody knows which."""
    untold = frozenset(analysis.interpreter.untold)
    conditions = [
        one for way in ways for one in way if not _is_known(analysis, one, size_arguments)
    ]
    if None in conditions:
        return untold
    read = {name for one in conditions if one is not None for name in one.names}
    return untold & {ex.input_of(name)[0] for name in read if ex.fact_of(name)}


def _ways_to(analysis: ClassAnalysis, module: Submodule | Instance, uses: list[Use]) -> list[Way]:
    """The ways without ``hasattr(self, "a")`` where the submodule is ``self.a``: built, it is there."""
    found = ways(uses)
    names = {name for way in found for one in way if one is not None for name in one.names}
    if not any(name.startswith(HAS) for name in names):
        return found
    assert module.call is not None
    own = ex.name(f"{HAS}{place_of(analysis, module.call)}")
    return [tuple(one for one in way if one != own) for way in found]


def _are_known(analysis: ClassAnalysis, ways: list[Way], size_arguments: set[str]) -> bool:
    return all(_is_known(analysis, one, size_arguments) for way in ways for one in way)


def _is_known(analysis: ClassAnalysis, condition: Expr | None, size_arguments: set[str]) -> bool:
    """Whether ``__init__`` can evaluate a condition."""
    if condition is None or not all(map(ex.is_input, condition.names)):
        return False
    return (
        is_constructible(analysis.interpreter, condition)
        or _presence_text(condition) in size_arguments
    )


def _is_size_given(analysis: ClassAnalysis, way: Way, size_arguments: set[str]) -> bool:
    """Whether a way is open where a size is given: ``if c is not None: y = self.dense(c)``."""
    return (
        len(way) == 1
        and way[0] is not None
        and _presence_text(way[0]) in size_arguments - analysis.interpreter.extras.facts
    )


def _presence_text(condition: Expr) -> str | None:
    """``c`` where the condition is that the argument ``c`` is given."""
    match condition.node:
        case ast.Name(id=name) if ex.fact_of(name) == ex.GIVEN:
            return ex.input_of(name)[0]
    return None
