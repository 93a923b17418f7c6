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
class Found:
    """What is known of a class, by id of the place: in the words of its constructor."""

    sites: Mapping[int, Site]
    dims: Mapping[int, str]
    static: Callable[
        [int], str | None
    ]  # "" where it is not known, None where this class never gets
    carried: Mapping[int, tuple[LoopCarry, ...]]
    arguments: Mapping[str, SizeArgument]


def handed_to_bases(analysis: ClassAnalysis, found: Found) -> Mapping[str, Mapping[str, str]]:
    """By base class, what its constructor is given for size arguments that are others here.

    Where no text of the arguments here gives what the base builds, that is a problem of the class.
    """
    own = {id(node) for node in walk(analysis.root.info.node)}
    sites = {key: site for key, site in found.sites.items() if id(site.call) not in own}
    handed: dict[str, Mapping[str, str]] = {}
    for parent in analysis.root.info.parents:
        if not sites or not parent.linen:
            continue
        base = analysis.sizes_of(parent.name)
        pairs = list(_pairs(base, found, sites, own))
        given = _given(analysis, base, found, pairs)
        pairs += _conditions(base, sites) if given else ()
        other = next(chain(_other_classes(base, sites), _different(pairs, given)), None)
        if other is None and not _is_missing(analysis, base, found, sites, given):
            handed[parent.name] = given
            continue
        reason = f"it inherits submodules of {parent.name} and calls them otherwise"
        told = f": {other}" if other else ""
        analysis.problems.append((analysis.root.info.node, reason + told))
    return {name: given for name, given in handed.items() if given}


@dataclass(frozen=True)
class _Pair:
    """One size that the base's text spells: what it is here, and there; empty where not known."""

    what: str
    here: str | None
    there: str | None


def _pairs(
    base: ClassSizes, found: Found, sites: Mapping[int, Site], own: Collection[int]
) -> Iterator[_Pair]:
    for key in sites.keys() & base.sites.keys():
        mine, theirs = sites[key], base.sites[key]
        for name in sorted(mine.sizes.keys() | theirs.sizes.keys()):
            built = ast.unparse(mine.call.func)
            yield _Pair(f"{name} of {built}", mine.sizes.get(name), theirs.sizes.get(name))
    for key in base.dims.keys() - own:
        here = found.dims.get(key) or found.static(key)
        if here is None:
            continue  # in a method that the class overrides
        if key in found.dims or _words(base.dims[key]) & {one.name for one in base.new_arguments}:
            yield _Pair("a size", here, base.dims[key])
    for key in base.carried.keys() & found.carried.keys():
        own_carries = {one.name: one for one in found.carried[key]}
        for one in base.carried[key]:
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
        yield _Pair(what, sites[key].reached or "always", base.sites[key].reached or "always")


def _given(
    analysis: ClassAnalysis, base: ClassSizes, found: Found, pairs: Collection[_Pair]
) -> Mapping[str, str]:
    """What makes the base's texts those of the class; arguments of the same name and text are left."""
    asked = {one.name for one in base.new_arguments if one.fact is None}
    known = {
        one.name
        for one in (*found.arguments.values(), *analysis.opaque.values())
        if one.fact is None
    }
    given: dict[str, str] = {}
    for pair in pairs:
        if not pair.here or not pair.there:
            continue
        for name, text in _bound(_parsed(pair.there), _parsed(pair.here), asked):
            if _is_spelled(analysis, text, known):
                given.setdefault(name, text)
    return {name: text for name, text in given.items() if name != text}


def _bound(there: ast.AST, here: ast.AST, asked: Collection[str]) -> Iterator[tuple[str, str]]:
    """What stands here where the base reads its arguments, as far as both are of one form."""
    if isinstance(there, ast.Name) and there.id in asked:
        yield there.id, ast.unparse(here)
    elif type(there) is type(here):
        mine, theirs = list(ast.iter_child_nodes(here)), list(ast.iter_child_nodes(there))
        if len(mine) == len(theirs):
            for one, other in zip(theirs, mine, strict=True):
                yield from _bound(one, other, asked)


def _is_spelled(analysis: ClassAnalysis, text: str, known: Collection[str]) -> bool:
    """Whether the constructor can say it before the base has set anything."""
    names = {one.id for one in each(_parsed(text), ast.Name)}
    read = {one.attr for one in each(_parsed(text), ast.Attribute) if is_self(one.value)}
    return names <= {*known, *_CALLABLE, "self"} and read <= analysis.root.info.field_names


def _different(pairs: Collection[_Pair], given: Mapping[str, str]) -> Iterator[str]:
    """What of the base's own text would have to say something else for the class that inherits."""
    for pair in pairs:
        told = _with(given)(pair.there) if pair.there else None
        if (ast.unparse(_parsed(pair.here)) if pair.here else None) != told:
            here, there = pair.here or "not known", pair.there or "not known"
            yield f"{pair.what} is {here}, and {there} there"


def _with(given: Mapping[str, str]) -> Callable[[str], str]:
    class Written(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            text = given.get(node.id)
            return node if text is None else ast.parse(text, mode="eval").body

    return lambda text: ast.unparse(Written().visit(_parsed(text)))


def _is_missing(
    analysis: ClassAnalysis,
    base: ClassSizes,
    found: Found,
    sites: Mapping[int, Site],
    given: Mapping[str, str],
) -> bool:
    """Whether the base needs an argument that the class has not, or the class one that it has not."""
    here = {one.name for one in (*found.arguments.values(), *analysis.opaque.values())}
    if {one.name for one in base.new_arguments} - here - given.keys():
        return True
    shared = {one.name: one for one in base.new_arguments}
    handed = {word for text in given.values() for word in _words(text)} - shared.keys()
    opaque = [
        one
        for site in sites.values()
        for text in site.sizes.values()
        if (one := analysis.opaque.get(text)) is not None
    ]
    return any(one != shared.get(one.name) and one.name not in handed for one in opaque)


def _words(text: str) -> set[str]:
    return {one.id for one in each(_parsed(text), ast.Name)}


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
