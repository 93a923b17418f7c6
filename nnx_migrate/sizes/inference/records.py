"""Sizes that recorded calls tell, or confirm, or contradict."""

from __future__ import annotations

import ast
import re

from nnx_migrate.abstract import expression as ex
from nnx_migrate.abstract.expression import Expr
from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes.evidence import ClassEvidence, recorded_axis
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.recorded_text import recorded_text
from nnx_migrate.sizes.result import Origin, SizeSource
from nnx_migrate.source.names import named_parameters

DISAGREE = "the code and the recorded calls disagree"  # how the problem of such a class begins


def with_evidence(
    analysis: ClassAnalysis,
    call: ast.Call,
    key: str,
    size: Expr | None,
    argument: SizeArgument | None,
) -> Expr | None:
    """The size of one argument of what ``call`` builds, from the code or else as recorded.

    A size of the code that some recorded call contradicts becomes a problem of the class.
    """
    if analysis.evidence is None:
        return size
    if size is None or _opaque(size):
        return _recorded_size(analysis, analysis.evidence, call, key, argument) or size
    compared, contradiction = analysis.evidence.compare(call, recorded_axis(key, argument), size)
    if contradiction is not None:
        text = f"{DISAGREE} on {key} of this submodule"
        analysis.problems.append((call, f"{text}: {contradiction}"))
    source = SizeSource.BOTH if compared else SizeSource.STATIC
    note = f"{compared} recorded sizes agree" if compared else ""
    analysis.origins[(id(call), key)] = Origin(source, note)
    return size


def _opaque(size: Expr) -> bool:
    """Whether the code only tells that it is the size of some local array."""
    return any(
        ex.opaque_local(ex.input_of(name)[0]) is not None
        for name in size.names
        if ex.is_input(name)
    )


def _recorded_size(
    analysis: ClassAnalysis,
    evidence: ClassEvidence,
    call: ast.Call,
    key: str,
    argument: SizeArgument | None,
) -> Expr | None:
    found = evidence.size(call, recorded_axis(key, argument))
    if found is None or not _known_inputs(analysis, found.size):
        return None
    analysis.origins[(id(call), key)] = Origin(SizeSource.RECORDED, found.note)
    text = f"{key} = {recorded_text(found.size)} is how it was recorded, not read from the code"
    analysis.interpreter.review.append((call, f"{text} ({found.note})"))
    return found.size


def _known_inputs(analysis: ClassAnalysis, size: Expr) -> bool:
    """Whether every input is a parameter of a method, so that a caller can pass its size on."""
    parameters = {
        one.arg
        for method in analysis.root.info.every_method
        for one in named_parameters(method.args)
    }
    inputs = [name for name in size.names if ex.is_input(name)]
    return all(re.findall(r"\w+", ex.input_of(name)[0])[0] in parameters for name in inputs)
