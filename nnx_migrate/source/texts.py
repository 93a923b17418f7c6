"""What is known of the text that an expression gives: how it begins, how it ends, whether that is all.

>>> import ast
>>> from nnx_migrate.source.modules import parse
>>> module = parse("m", "m.py", "KINDS = ['vit', 'mlp']\\nf'models.{KINDS[i]}.main'\\n")
>>> [one.start for one in Reader(module, [module]).texts_of(module.tree.body[1].value)]
['models.vit.main', 'models.mlp.main']
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from string import Formatter

from nnx_migrate.source.bindings import bound_values
from nnx_migrate.source.modules import Module
from nnx_migrate.source.names import FunctionNode, defaults_of, parameter_names, positional_names
from nnx_migrate.source.walking import has_starred

_MOST = 256  # texts that one expression may be
_ELEMENTS = frozenset({"enumerate", "iter", "list", "next", "reversed", "set", "sorted", "tuple"})
_OF_DICT = frozenset({"items", "keys", "values"})
_READS = frozenset({"count", "format", "get", "index", "items", "join", "keys", "values"})
_READS |= {"endswith", "lower", "partition", "replace", "rpartition", "rsplit", "split"}
_READS |= {"startswith", "strip", "upper"}
_LOOKS = frozenset({"any", "all", "bool", "len", "print", "repr", "str", "zip"})
_COLLECTIONS = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
_CUTS = frozenset({"partition", "rpartition", "rsplit", "split"})


@dataclass(frozen=True)
class Text:
    """A text of which a part is known.

    Attributes:
      start: how it begins.
      end: how it ends; may overlap with the start.
      whole: whether the start is all of it.
    """

    start: str
    end: str
    whole: bool

    def then(self, other: Text) -> Text:
        """It with another behind it."""
        return Text(
            self.start + other.start if self.whole else self.start,
            self.end + other.end if other.whole else other.end,
            self.whole and other.whole,
        )


ANY = Text("", "", whole=False)


def _literal(text: str) -> Text:
    return Text(text, text, whole=True)


class Reader:
    """Reads the texts of a module's expressions; ``modules`` are all of its project, if they are known."""

    def __init__(self, module: Module, modules: Iterable[Module] | None) -> None:
        self.module = module
        self._modules = modules
        self._seen: set[int] = set()

    def texts_of(self, node: ast.expr) -> Sequence[Text]:
        """Every text that an expression may give; of a collection, those of its elements."""
        self._seen = set()
        found = dict.fromkeys(self._texts(node))
        return [ANY] if not found or len(found) > _MOST else [*found]

    def _texts(self, node: ast.expr) -> Iterator[Text]:
        match node:
            case ast.Constant(value=str() as text):
                yield _literal(text)
            case ast.JoinedStr(values=values):
                yield from self._join(values)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                yield from self._texts(value)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                yield from self._join([left, right])
            case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod(), right=right):
                arguments = right.elts if isinstance(right, ast.Tuple) else [right]
                yield from self._percent_format(re.split(r"%s", text), arguments)
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str() as text), attr="format")
            ):
                yield from self._format(text, node)
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str() as text), attr="join"),
                args=[ast.List(elts=parts) | ast.Tuple(elts=parts)],
            ) if not has_starred(parts):
                between = [one for part in parts for one in (ast.Constant(text), part)]
                yield from self._join(between[1:])
            case ast.Subscript(
                value=ast.Call(func=ast.Attribute(value=owner, attr=name), args=args, keywords=[]),
                slice=index,
            ) if name in _CUTS:
                yield from self._cut(owner, name, [*args, index])
            case ast.IfExp(body=body, orelse=orelse):
                yield from self._texts(body)
                yield from self._texts(orelse)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                for part in parts:
                    yield from self._texts(part)
            case ast.Dict(keys=keys, values=values):
                for key in keys:
                    yield from self._texts(key) if key is not None else [ANY]
                for part in values:
                    yield from self._texts(part)
            case ast.Subscript(value=value):
                yield from self._elements(value)
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=[]) if name in _OF_DICT:
                yield from self._elements(value)
            case ast.Call(func=ast.Attribute(value=value, attr="get"), args=[_, *others]):
                yield from self._elements(value)
                for one in others:
                    yield from self._texts(one)
            case ast.Call(func=ast.Name(id=name), args=[value]) if name in _ELEMENTS:
                yield from self._elements(value)
            case ast.Name(id="__name__"):
                yield _literal(self.module.name)
            case ast.Name(id="__package__"):
                yield _literal(self.module.package)
            case ast.Name():
                yield from self._bound(node)
            case ast.Constant(value=None):
                return  # no name
            case _:
                yield ANY

    def _join(self, parts: Sequence[ast.expr]) -> Iterator[Text]:
        """Texts, one behind the other."""
        alternatives = [[*dict.fromkeys(self._texts(part))] for part in parts]
        found = [_literal("")]
        for one in alternatives:
            one = one if 0 < len(one) <= _MOST else [ANY]
            if len(found) * len(one) > _MOST:
                one = [ANY]
            found = [before.then(after) for before in found for after in one]
        yield from found

    def _percent_format(self, pieces: list[str], arguments: Sequence[ast.expr]) -> Iterator[Text]:
        """``"%s.%s" % (one, other)``, by what stands between."""
        is_plain = len(pieces) == len(arguments) + 1 and not any("%" in one for one in pieces)
        if not is_plain or has_starred(arguments):
            yield ANY
            return
        parts: list[ast.expr] = [ast.Constant(pieces[0])]
        for one, text in zip(arguments, pieces[1:], strict=True):
            parts += [one, ast.Constant(text)]
        yield from self._join(parts)

    def _format(self, text: str, call: ast.Call) -> Iterator[Text]:
        """``"models.{}".format(name)``."""
        arguments: dict[str, ast.expr] = {str(i): one for i, one in enumerate(call.args)}
        arguments |= {one.arg: one.value for one in call.keywords if one.arg}
        parts: list[ast.expr] = []
        position = 0
        try:
            fields = [*Formatter().parse(text)]
        except ValueError:
            fields = [("", "?", "", None)]
        for before, field, spec, conversion in fields:
            parts.append(ast.Constant(before))
            if field is not None:
                name = field or str(position)
                position += not field
                is_plain = not spec and not conversion and name in arguments
                value = arguments[name] if is_plain else ast.Call(ast.Name("?"), [], [])
                starred = isinstance(value, ast.Starred)
                parts.append(ast.Call(ast.Name("?"), [], []) if starred else value)
        if has_starred(call.args):
            yield ANY
        else:
            yield from self._join(parts)

    def _cut(self, owner: ast.expr, name: str, arguments: Sequence[ast.expr]) -> Iterator[Text]:
        """``__name__.split(".")[0]``."""
        try:
            *args, index = [ast.literal_eval(one) for one in arguments]
            for one in self._names(owner):
                if not one.whole:
                    yield ANY
                    continue
                cut = getattr(one.start, name)(*args)
                yield _literal(cut[index])
        except (ValueError, TypeError, IndexError):
            yield ANY

    def _names(self, owner: ast.expr) -> Iterator[Text]:
        """Texts; of a module's name, also those that it has below another root (``src.a`` is ``a``)."""
        if not isinstance(owner, ast.Name) or owner.id not in ("__name__", "__package__"):
            yield from self._texts(owner)
            return
        for one in self._texts(owner):
            parts = one.start.split(".")
            yield from (_literal(".".join(parts[start:])) for start in range(len(parts)))

    def _elements(self, node: ast.expr) -> Iterator[Text]:
        """Texts of what is in a collection; a text's own letters are no texts of it."""
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
            yield ANY
        else:
            yield from self._texts(node)

    def _bound(self, name: ast.Name) -> Iterator[Text]:
        """Texts that a name may hold."""
        for around in (*self.module.parents.functions(name), self.module.tree):
            if not isinstance(around, ast.Module) and name.id in parameter_names(around):
                yield from self._parameter_texts(around, name.id)
                return
            values = [*bound_values(around, name.id)]
            if not values:
                continue
            everywhere = self._modules if isinstance(around, ast.Module) else [self.module]
            if everywhere is None:
                break  # a file that nobody read may change it
            is_held = any(
                isinstance(one, _COLLECTIONS) and not self._is_looped(one) for one in values
            )
            if not all(_only_reads(self.module, one, name.id, is_held) for one in everywhere):
                break
            for value in values:
                if value is None:
                    yield ANY
                elif id(value) not in self._seen:
                    self._seen.add(id(value))
                    yield from self._of_loop(value)
            return
        yield ANY

    def _of_loop(self, value: ast.expr) -> Iterator[Text]:
        """Texts that a name is bound to, or those that a loop takes from a collection."""
        yield from self._elements(value) if self._is_looped(value) else self._texts(value)

    def _is_looped(self, value: ast.expr) -> bool:
        above = self.module.parents.of(value)
        return isinstance(above, ast.For | ast.comprehension) and above.iter is value

    # ---- what callers give

    def _parameter_texts(self, function: FunctionNode, name: str) -> Iterator[Text]:
        """Texts of a parameter where every mention of its function is a call."""
        arguments = [*self._arguments(function, name)]
        if None in arguments or _binds_again(function, name):
            yield ANY
            return
        for one in arguments:
            assert one is not None
            home, value = one
            if id(value) not in self._seen:
                self._seen.add(id(value))
                inner = Reader(home, self._modules)
                inner._seen = self._seen
                yield from inner._texts(value)

    def _arguments(
        self, function: FunctionNode, name: str
    ) -> Iterator[tuple[Module, ast.expr] | None]:
        if isinstance(function, ast.Lambda) or function.decorator_list or self._modules is None:
            yield None
            return
        spec, own = function.args, self.module
        ordered = positional_names(spec)
        if own.parents.of(function) is not own.tree or name not in (
            *ordered,
            *(one.arg for one in spec.kwonlyargs),
        ):
            yield None
            return
        defaults = defaults_of(spec)
        if not any(function.name in home.by_word for home in self._modules):
            yield None  # somebody else calls it
        for home in self._modules:
            if _writes(home, function.name):
                yield None  # ``getattr(module, "load")``
            for use in home.by_word.get(function.name, ()):
                call = home.parents.of(use)
                if not isinstance(call, ast.Call) or call.func is not use:
                    yield None
                    continue
                keywords = {one.arg: one.value for one in call.keywords}
                if None in keywords or has_starred(call.args):
                    yield None
                    continue
                arguments = dict(zip(ordered, call.args, strict=False)) | keywords
                value = arguments.get(name)
                if value is not None:
                    yield home, value
                else:
                    yield (own, defaults[name]) if name in defaults else None


def _binds_again(function: FunctionNode, name: str) -> bool:
    """Whether a function binds a parameter again."""
    return any(True for _ in bound_values(function, name))


def _writes(module: Module, word: str) -> bool:
    """Whether a file has a word as a string, or gives a function of that name another."""
    if word not in module.text:
        return False
    for node in module.nodes:
        match node:
            case ast.Constant(value=value) if value == word:
                return True
            case ast.ImportFrom(names=names):
                if any(one.name == word and one.asname for one in names):
                    return True
    return False


# ---- what keeps a name's value


def _only_reads(home: Module, module: Module, word: str, is_held: bool) -> bool:
    """Whether a file never gives a name of another, or of its own, a new value."""
    for node in module.by_word.get(word, ()):
        if isinstance(node, ast.Name) and module is not home:
            continue
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            return False
        if is_held and isinstance(node.ctx, ast.Load) and not _only_looks(module, node):
            return False
    if module is home:
        return True
    names = {
        one.asname or one.name
        for node in module.nodes
        if isinstance(node, ast.ImportFrom)
        for one in node.names
        if one.name == word
    }
    found = (node for name in names for node in module.by_word.get(name, ()))
    return not is_held or all(_only_looks(module, one) for one in found)


def _only_looks(module: Module, node: ast.expr) -> bool:
    """Whether a collection is the same afterwards."""
    match module.parents.of(node):
        case ast.Subscript(value=value, ctx=ast.Load()) as item if value is node:
            above = module.parents.of(item)
            return not isinstance(above, ast.Attribute) or above.attr in _READS
        case ast.Attribute(attr=name):
            return name in _READS
        case ast.Call(func=ast.Name(id=name)):
            return name in _ELEMENTS or name in _LOOKS
        case ast.For() | ast.comprehension() | ast.Compare() | ast.FormattedValue() | ast.Starred():
            return True
        case ast.keyword(arg="choices"):
            return True
    return False
