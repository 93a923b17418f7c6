"""Sizes that recorded calls tell, or confirm, or contradict."""

from __future__ import annotations

import ast
import re
from functools import partial

from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes import expression as ex
from nnx_migrate.sizes.evidence import ClassEvidence, Found, wanted
from nnx_migrate.sizes.expression import Expr
from nnx_migrate.sizes.recorded_text import recorded_text
from nnx_migrate.sizes.result import Origin, SizeSource
from nnx_migrate.sizes.study.in_function import size_in_function
from nnx_migrate.sizes.study.items import item_of_field
from nnx_migrate.sizes.study.rounds import rounds_of
from nnx_migrate.sizes.study.study import Study

DISAGREE = "the code and the recorded calls disagree"  # how the problem of such a class begins


def with_evidence(
    study: Study, call: ast.Call, key: str, size: Expr | None, argument: SizeArgument | None
) -> Expr | None:
    """The size of one argument of what ``call`` builds, from the code or else as recorded.

    A size of the code that some recorded call contradicts becomes a problem of the class.
    """
    if study.evidence is None or (argument is not None and argument.each is not None):
        return size  # nothing recorded, or many sizes in one argument
    if size is None or _opaque(size):
        return _recorded(study, study.evidence, call, key, argument) or size
    rounds = partial(rounds_of, study, call)
    compared, contradiction = study.evidence.compare(call, wanted(key, argument), size, rounds)
    if contradiction is not None:
        text = f"{DISAGREE} on {key} of this submodule"
        study.problems.append((call, f"{text}: {contradiction}"))
    entries = [study.entries[name] for name in sorted(size.names & study.entries.keys())]
    if entries:
        _say(study, call, key, entries[0])
        return size
    source = SizeSource.BOTH if compared else SizeSource.STATIC
    note = f"{compared} recorded sizes agree" if compared else ""
    study.origins[(id(call), key)] = Origin(source, note)
    return size


def _opaque(size: Expr) -> bool:
    """Whether the code only tells that it is the size of some local array."""
    return any(
        ex.opaque_local(ex.input_of(name)[0]) is not None
        for name in size.names
        if ex.is_input(name)
    )


def _recorded(
    study: Study,
    evidence: ClassEvidence,
    call: ast.Call,
    key: str,
    argument: SizeArgument | None,
) -> Expr | None:
    want = wanted(key, argument)
    found = (
        evidence.size(call, want)
        or item_of_field(study, evidence, call, want)
        or size_in_function(study, evidence, call, argument)
    )
    if found is None or not known_inputs(study, found.size):
        return None
    _say(study, call, key, found)
    return found.size


def _say(study: Study, call: ast.Call, key: str, found: Found) -> None:
    """Note that a size is the recorded one, in a loop that its first round's is."""
    study.origins[(id(call), key)] = Origin(SizeSource.RECORDED, found.note)
    text = f"{key} = {recorded_text(found.size)} is how it was recorded, not read from the code"
    study.interpreter.review.append((call, f"{text} ({found.note})"))


def known_inputs(study: Study, size: Expr) -> bool:
    """Whether every input is a parameter of a method, so that a caller can pass its size on."""
    methods = [one for cls in study.root.info.mro for one in cls.methods.values()]
    parameters = {
        one.arg
        for method in methods
        for one in (*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs)
    }
    inputs = [name for name in size.names if ex.is_input(name)]
    return all(re.findall(r"\w+", ex.input_of(name)[0])[0] in parameters for name in inputs)
