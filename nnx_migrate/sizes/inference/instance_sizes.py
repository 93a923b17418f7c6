"""Sizes that a submodule of a class of the project needs."""

from __future__ import annotations

from nnx_migrate.abstract.values import Instance, Use
from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes.evidence import recorded_axis
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.inference.consensus import is_called
from nnx_migrate.sizes.inference.initial_call import Unsure, passed_fact
from nnx_migrate.sizes.inference.other_methods import check_other_methods
from nnx_migrate.sizes.inference.size_texts import asked_size, size_text
from nnx_migrate.sizes.inference.witnesses import hangs_on_fields, is_passed, witness_of
from nnx_migrate.sizes.interpreter import spellable


def instance_sizes(
    analysis: ClassAnalysis, module: Instance, uses: list[Use], without: str = ""
) -> dict[str, str]:
    """Texts of the constructor's size arguments by their names; ``without`` is known otherwise."""
    child, place = analysis.sizes_of(module.info.name), module.call
    assert place is not None
    unsure = bool(uses) and not is_called(uses)
    facts = [one for one in child.new_arguments if one.fact is not None and one.name != without]
    sizes = {one.name: _fact_text(analysis, module, one, uses) for one in facts}
    is_known = any(text not in ("", "False") for text in sizes.values())
    for argument in facts if without else ():  # another class may get it
        if argument.default is not None:
            sizes[argument.name] = sizes[argument.name] or repr(argument.default)
    for argument in child.new_arguments:
        if argument.name == without or argument.fact is not None:
            continue
        size, conditional = witness_of(analysis, child, argument, uses)
        size = size and analysis.interpreter.loop_names.at(size, place)
        size = size if size is not None and spellable(size) else None
        below = argument.name in child.decisive and argument.submodule is not None
        # What the child builds where a fact holds that it is told needs its sizes.
        optional = below or is_known or hangs_on_fields(child, argument)
        optional = optional or any(is_passed(argument, use) for use in uses)
        if size is None and argument.optional and not optional:
            continue
        conditional = conditional or unsure or argument.optional
        if (
            size is None
            and argument.name in child.decisive
            and not _is_recorded(analysis, module, argument)
        ):
            sizes[argument.name] = asked_size(
                analysis, module, argument.name, conditional, argument
            )
            continue
        sizes[argument.name] = size_text(
            analysis, module, argument.name, size, conditional, argument
        )
    ordered = {one.name: sizes.get(one.name, "") for one in child.new_arguments}
    found = {key: text for key, text in ordered.items() if text}
    check_other_methods(analysis, module, uses, found)
    return found


def _is_recorded(analysis: ClassAnalysis, module: Instance, argument: SizeArgument) -> bool:
    """Whether a size that is None without what it measures has one in every recorded call."""
    assert module.call is not None
    want = recorded_axis(argument.name, argument)
    return analysis.evidence is not None and analysis.evidence.always_has(module.call, want)


def _fact_text(
    analysis: ClassAnalysis, module: Instance, argument: SizeArgument, uses: list[Use]
) -> str:
    """What is passed for a fact of the child's initial call; "" to leave it to its default."""
    assert module.call is not None
    try:
        fact = passed_fact(analysis, argument, uses)
    except Unsure as unsure:
        analysis.problems.append((module.call, unsure.reason))
        if unsure.by_default:
            analysis.unpassable_facts.append((module.info.name, argument.name))
        return ""
    return fact.text if fact is not None else ""
