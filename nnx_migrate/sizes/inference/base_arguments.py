"""What a class hands to the constructor of the class whose submodules it inherits.

The base's ``__init__`` builds them for both, from its own size arguments. A class that calls them with
other arguments (``def __call__(self, x): return super().__call__(x, x)``) has arguments of its own, and
says what they are to the base: ``super().__init__(q_features=in_features, kv_features=in_features)``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes.inference.class_analysis import ClassAnalysis
from nnx_migrate.sizes.result import ClassSizes, LoopCarry, Site
from nnx_migrate.source.walking import each, is_self, walk

_CALLABLE = frozenset({"int", "len", "max", "min", "sum"})


@dataclass(frozen=True)
class InitSizes:
    """What is known of a class, by id of the place: in the words of its constructor."""

    sites: Mapping[int, Site]
    dims: Mapping[int, str]
    static: Callable[
        [int], str | None
    ]  # "" where it is not known, None where this class never gets
    loop_carries: Mapping[int, tuple[LoopCarry, ...]]
    arguments: Mapping[str, SizeArgument]


def base_arguments(
    analysis: ClassAnalysis, init_sizes: InitSizes
) -> Mapping[str, Mapping[str, str]]:
    """By base class, what its constructor is given for size arguments that are others here.

    Where no text of the arguments here gives what the base builds, that is a problem of the class.
    """
    own = {id(node) for node in walk(analysis.root.info.node)}
    sites = {key: site for key, site in init_sizes.sites.items() if id(site.call) not in own}
    arguments_by_base: dict[str, Mapping[str, str]] = {}
    for parent in analysis.root.info.parents:
        if not sites or not parent.linen:
            continue
        base = analysis.sizes_of(parent.name)
        pairs = list(_pairs(base, init_sizes, sites, own))
        arguments = _substitutions(analysis, base, init_sizes, pairs)
        pairs += _conditions(base, sites) if arguments else ()
        other = next(chain(_other_classes(base, sites), _different(pairs, arguments)), None)
        if other is None and not _is_missing(analysis, base, init_sizes, sites, arguments):
            arguments_by_base[parent.name] = arguments
            continue
        reason = f"it inherits submodules of {parent.name} and calls them otherwise"
        example = f": {other}" if other else ""
        analysis.problems.append((analysis.root.info.node, reason + example))
    return {name: arguments for name, arguments in arguments_by_base.items() if arguments}


@dataclass(frozen=True)
class _Pair:
    """One size that the base's text spells: what it is here, and there; empty where not known."""

    what: str
    here: str | None
    there: str | None


def _pairs(
    base: ClassSizes, init_sizes: InitSizes, sites: Mapping[int, Site], own: Collection[int]
) -> Iterator[_Pair]:
    for key in sites.keys() & base.sites.keys():
        mine, theirs = sites[key], base.sites[key]
        for name in sorted(mine.sizes.keys() | theirs.sizes.keys()):
            built = ast.unparse(mine.call.func)
            yield _Pair(f"{name} of {built}", mine.sizes.get(name), theirs.sizes.get(name))
    for key in base.dims.keys() - own:
        here = init_sizes.dims.get(key) or init_sizes.static(key)
        if here is None:
            continue  # in a method that the class overrides
        if key in init_sizes.dims or _words(base.dims[key]) & {
            one.name for one in base.new_arguments
        }:
            yield _Pair("a size", here, base.dims[key])
    for key in base.loop_carries.keys() & init_sizes.loop_carries.keys():
        own_carries = {one.name: one for one in init_sizes.loop_carries[key]}
        for one in base.loop_carries[key]:
            other = own_carries.get(one.name)
            before, after = (other.before, other.after) if other else (None, None)
            yield _Pair(f"{one.name} before a loop", before, one.before)
            yield _Pair(f"{one.name} in a loop", after, one.after)


def _other_classes(base: ClassSizes, sites: Mapping[int, Site]) -> Iterator[str]:
    """What is of another class here: ``self.norm()`` where both classes have their own ``norm = nn.LayerNorm``."""
    for key in sites.keys() & base.sites.keys():
        here, there = sites[key], base.sites[key]
        if (here.symbol, here.class_name) != (there.symbol, there.class_name):
            yield f"{ast.unparse(here.call.func)} is of another class there"


def _conditions(base: ClassSizes, sites: Mapping[int, Site]) -> Iterator[_Pair]:
    """Under which conditions the initial call reaches what the base builds."""
    for key in sites.keys() & base.sites.keys():
        built = ast.unparse(sites[key].call.func)
        what = f"whether the initial call reaches {built}"
        yield _Pair(what, sites[key].condition or "always", base.sites[key].condition or "always")


def _substitutions(
    analysis: ClassAnalysis, base: ClassSizes, init_sizes: InitSizes, pairs: Collection[_Pair]
) -> Mapping[str, str]:
    """What makes the base's texts those of the class; arguments of the same name and text are left."""
    size_names = {one.name for one in base.new_arguments if one.fact is None}
    known = {
        one.name
        for one in (*init_sizes.arguments.values(), *analysis.opaque.values())
        if one.fact is None
    }
    substitutions: dict[str, str] = {}
    for pair in pairs:
        if not pair.here or not pair.there:
            continue
        for name, text in _bound(_parse(pair.there), _parse(pair.here), size_names):
            if _is_spelled(analysis, text, known):
                substitutions.setdefault(name, text)
    return {name: text for name, text in substitutions.items() if name != text}


def _bound(there: ast.AST, here: ast.AST, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """What stands here where the base reads its arguments, as far as both are of one form."""
    if isinstance(there, ast.Name) and there.id in names:
        yield there.id, ast.unparse(here)
    elif type(there) is type(here):
        mine, theirs = list(ast.iter_child_nodes(here)), list(ast.iter_child_nodes(there))
        if len(mine) == len(theirs):
            for one, other in zip(theirs, mine, strict=True):
                yield from _bound(one, other, names)


def _is_spelled(analysis: ClassAnalysis, text: str, known_names: Collection[str]) -> bool:
    """Whether the constructor can say it before the base has set anything."""
    names = {one.id for one in each(_parse(text), ast.Name)}
    read = {one.attr for one in each(_parse(text), ast.Attribute) if is_self(one.value)}
    return names <= {*known_names, *_CALLABLE, "self"} and read <= analysis.root.info.field_names


def _different(pairs: Collection[_Pair], arguments: Mapping[str, str]) -> Iterator[str]:
    """What of the base's own text would have to say something else for the class that inherits."""
    for pair in pairs:
        text = _with(arguments)(pair.there) if pair.there else None
        if (ast.unparse(_parse(pair.here)) if pair.here else None) != text:
            here, there = pair.here or "not known", pair.there or "not known"
            yield f"{pair.what} is {here}, and {there} there"


def _with(arguments: Mapping[str, str]) -> Callable[[str], str]:
    class Written(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            text = arguments.get(node.id)
            return node if text is None else ast.parse(text, mode="eval").body

    return lambda text: ast.unparse(Written().visit(_parse(text)))


def _is_missing(
    analysis: ClassAnalysis,
    base: ClassSizes,
    init_sizes: InitSizes,
    sites: Mapping[int, Site],
    arguments: Mapping[str, str],
) -> bool:
    """Whether the base needs an argument that the class has not, or the class one that it has not."""
    here = {one.name for one in (*init_sizes.arguments.values(), *analysis.opaque.values())}
    if {one.name for one in base.new_arguments} - here - arguments.keys():
        return True
    shared = {one.name: one for one in base.new_arguments}
    words = {word for text in arguments.values() for word in _words(text)} - shared.keys()
    opaque = [
        one
        for site in sites.values()
        for text in site.sizes.values()
        if (one := analysis.opaque.get(text)) is not None
    ]
    return any(one != shared.get(one.name) and one.name not in words for one in opaque)


def _words(text: str) -> set[str]:
    return {one.id for one in each(_parse(text), ast.Name)}


def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
