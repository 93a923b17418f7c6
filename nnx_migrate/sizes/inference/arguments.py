"""Names of the constructor arguments that hand sizes in."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from nnx_migrate.abstract import expression as ex
from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes.inference.class_analysis import INPUT, ClassAnalysis
from nnx_migrate.sizes.inference.initial_call import METHOD, fact_argument
from nnx_migrate.sizes.method_lifts import UnplacedAxis, callers_axis
from nnx_migrate.sizes.result import Site
from nnx_migrate.source.walking import each, is_name, walk


def _opaque_argument(
    analysis: ClassAnalysis, name: str, path: str, submodule: str | None, used_names: set[str]
) -> SizeArgument:
    local = f"{ex.opaque_local(path)}_features"
    text = f"{submodule.replace('/', '_')}_in_features" if submodule else local
    while text in used_names:
        text = f"input_{text}"
    if submodule is None:
        analysis.unplaced_sizes.add(text)
    optional = name in analysis.optional - analysis.required_sizes
    return SizeArgument(text, submodule=submodule, optional=optional)


def name_arguments(
    analysis: ClassAnalysis, needed_sizes: set[str], first_inputs: dict[str, str | None]
) -> dict[str, SizeArgument]:
    """Constructor argument of every input size in use."""
    facts = [
        name
        for name in sorted(needed_sizes)
        if ex.fact_of(name) and not _shows(analysis, name, needed_sizes)
    ]
    sizes = sorted(name for name in needed_sizes if not ex.fact_of(name))
    inputs = {name: ex.input_of(name) for name in sizes}
    whole = {path for path, axis in inputs.values() if axis != -1}
    paths = list(dict.fromkeys(path for path, _ in inputs.values()))
    first = _first_argument(analysis)
    used_names = set(analysis.root.info.field_names) | _local_sizes(analysis) | set(analysis.opaque)
    if analysis.root.info.function is not None:
        used_names |= {one.arg for one in each(analysis.root.info.function, ast.arg)}
    arguments = {}
    named: dict[str, str] = {}  # path -> argument name: axes of one input share theirs
    for name, (path, axis) in inputs.items():
        if ex.opaque_local(path) is not None:
            arguments[name] = _opaque_argument(
                analysis, name, path, first_inputs.get(name), used_names
            )
            used_names.add(arguments[name].name)
            continue
        is_whole = path in whole
        text = _argument_name(
            path, is_whole, paths == [path] and path == first and not analysis.opaque
        )
        alike = [one for one, (other, _) in inputs.items() if other == path]
        others = used_names | {t for p, t in named.items() if p != path}
        while text in others or is_taken(analysis, text, path, alike):
            text = f"input_{text}"
        named[path] = text
        open_sizes = analysis.optional - analysis.required_sizes
        optional = name in open_sizes or (is_whole and ex.input_shape(path).text in open_sizes)
        method = _method_with(analysis, path)
        outer = _axis(analysis, method, path, axis)
        arguments[name] = SizeArgument(
            text,
            method=method,
            argument=path,
            axis=None if is_whole else outer,
            optional=optional,
        )
    found = analysis.root.info.find(METHOD)
    for name in facts:
        arguments[name] = fact_argument(name, found[1] if found else None, used_names)
        used_names.add(arguments[name].name)
    return arguments


def _axis(analysis: ClassAnalysis, method: str, path: str, axis: int | None) -> int | None:
    """The axis of the argument that callers of the method pass; None for its whole shape."""
    try:
        return callers_axis(analysis.interpreter, method, path, axis)
    except UnplacedAxis as why:
        reason = f"it needs the {'shape' if axis is None else 'size'} of {path}: {why}"
        analysis.problems.append((analysis.root.info.node, reason))
        return axis


def _shows(analysis: ClassAnalysis, name: str, needed_sizes: set[str]) -> bool:
    """Whether a fact is one that a size shows: an argument that is not given has none."""
    path = ex.input_of(name)[0]
    if ex.fact_of(name) != ex.GIVEN or path in analysis.interpreter.extras.facts:
        return False
    return any(not ex.fact_of(one) and ex.input_of(one)[0] == path for one in needed_sizes)


def shown_by(name: str, arguments: Mapping[str, SizeArgument]) -> str | None:
    """The constructor argument whose being None says that a call argument is not given."""
    if ex.fact_of(name) != ex.GIVEN or name in arguments:
        return None
    path, _ = ex.input_of(name)
    return next((one.name for one in arguments.values() if one.argument == path), None)


def _local_sizes(analysis: ClassAnalysis) -> set[str]:
    """Names that ``__init__`` already gives to sizes that loops change."""
    return {name for entries in analysis.interpreter.carries.values() for name, _, _ in entries}


def _method_with(analysis: ClassAnalysis, path: str) -> str:
    """The method whose parameter a path starts with, the initial call first."""
    head = re.findall(r"\w+", path)[0]
    names = ["__call__", *sorted(analysis.root.info.method_names)]
    for name in names:
        found = analysis.root.info.find(name)
        if found and head in {one.arg for one in (*found[1].args.args, *found[1].args.kwonlyargs)}:
            return name
    return "__call__"


def _argument_name(path: str, whole: bool, only: bool) -> str:
    counted_back = path.rpartition(".")[2].replace("[-", "_minus_")  # ``feats[-1]``
    leaf = re.sub(r"\W+", "_", counted_back).strip("_")
    if whole:
        return f"{leaf}_shape"
    return "in_features" if only else f"{leaf}_features"


def _first_argument(analysis: ClassAnalysis) -> str | None:
    found = analysis.root.info.find("__call__")
    names = [one.arg for one in found[1].args.args[1:]] if found else []
    return names[0] if names else None


def renamer(analysis: ClassAnalysis, arguments: dict[str, SizeArgument]) -> Callable[[str], str]:
    """Function that writes argument names for input sizes in a text."""

    def spelled(match: re.Match[str]) -> str:
        argument = arguments.get(match.group())
        shown = shown_by(match.group(), arguments)
        if shown is not None:
            return f"{shown} is not None"
        if argument is None:
            return match.group()
        path, axis = ex.input_of(match.group())
        if argument.axis is not None:
            return argument.name
        axis = _axis(analysis, argument.method, path, axis)
        return argument.name if axis is None else f"{argument.name}[{axis}]"

    return lambda text: INPUT.sub(spelled, text)


def renamed_site(site: Site, rename: Callable[[str], str], used: set[str]) -> Site:
    """The site with argument names in its texts."""
    variable = site.out_variable
    if variable is not None and not any(variable in text for text in used):
        variable = None
    return replace(
        site,
        sizes={key: rename(text) for key, text in site.sizes.items()},
        out_variable=variable,
        condition=rename(site.condition) if site.condition else None,
    )


# ---- locals of the user's methods that have the name of a constructor argument for a size
# Statements of compact methods move into ``__init__``, locals and all: there such a local would hide
# the argument, unless it is the same size (``in_features = x.shape[-1]``).


def is_taken(analysis: ClassAnalysis, text: str, path: str, sizes: Collection[str]) -> bool:
    """Whether a method uses the name ``text`` for something else.

    Args:
      path: the call argument that the size is of.
      sizes: the size as expression texts, one for each axis in use.
    """
    found = list(_uses(analysis, text))
    loads = [one for one in found if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    if len(loads) < len(found) and _is_whole_shape(analysis, text, path):
        return False
    if not loads:
        return bool(found)
    return any(analysis.interpreter.statics.get(id(one)) not in sizes for one in loads)


def _uses(analysis: ClassAnalysis, text: str) -> Iterator[ast.Name | ast.arg]:
    for node in _nodes(analysis):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) if name == text:
                yield node


def _is_whole_shape(analysis: ClassAnalysis, text: str, path: str) -> bool:
    """Whether every assignment to ``text`` gives it the whole shape of the call argument."""
    values = [
        value
        for node in _nodes(analysis)
        if isinstance(node, ast.Assign)
        for value in [node.value]
        if any(is_name(one, text) for one in walk(node.targets[0]))
    ]
    return bool(values) and all(ast.unparse(one) == f"{path}.shape" for one in values)


def _nodes(analysis: ClassAnalysis) -> Iterator[ast.AST]:
    for method in analysis.root.info.every_method:
        yield from walk(method)
