"""From what the interpreter saw to what the rewriter needs: sites, sizes, new arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from nnx_migrate.model import SizeArgument
from nnx_migrate.sizes import expression as ex
from nnx_migrate.sizes.expression import Expr
from nnx_migrate.sizes.interpreter import Interpreter, out_variable, spellable
from nnx_migrate.sizes.result import Carried, ClassSizes, Site, SiteKind
from nnx_migrate.sizes.values import (
    Argument,
    Choice,
    Instance,
    Record,
    Sequence,
    Submodule,
    Use,
    Value,
    as_array,
)
from nnx_migrate.source.project import Scope

_INPUT = re.compile(r"\bsize__\w+")


@dataclass
class Study:
    """One finished run of the interpreter over a class."""

    interpreter: Interpreter
    root: Instance
    output: Value
    sizes_of: Callable[[str], ClassSizes]
    exported: bool
    opaque: dict[str, SizeArgument] = field(default_factory=dict)
    problems: list[tuple[ast.AST, str]] = field(default_factory=list)
    optional: set[str] = field(default_factory=set)
    required: set[str] = field(default_factory=set)

    @property
    def nodes(self) -> list[ast.ClassDef]:
        """Class statements whose code the class runs."""
        return [cls.node for cls in self.root.info.mro]


def finish(study: Study) -> ClassSizes:
    """Collect sites and choose the constructor arguments for the sizes that stay open."""
    sites = {key: _site(study, module) for key, module in study.interpreter.built.items()}
    study.problems.extend(_misplaced(study))
    output = as_array(_first_output(study.output))
    last = output.axis(-1) if output else None
    carried = {
        key: tuple((name, one.text, two.text) for name, one, two in entries)
        for key, entries in study.interpreter.carried.items()
    }
    needed = _needed(study, sites, carried)
    arguments = _name_arguments(study, needed, _entered(study, sites, carried))
    rename = _renamer(study, arguments)
    statics = {k: v for k, v in study.interpreter.statics.items() if v is not None}
    dims = {
        key: rename(text)
        for key, text in statics.items()
        if _INPUT.search(text) and set(_INPUT.findall(text)) <= needed
    }
    used = {text for site in sites.values() for text in site.sizes.values()} | set(dims.values())
    used |= {text for entries in carried.values() for entry in entries for text in entry[1:]}
    _check_inherited(study, sites, arguments)
    return ClassSizes(
        new_arguments=tuple(
            {a.name: a for a in (*arguments.values(), *study.opaque.values())}.values()
        ),
        sites={key: _renamed(site, rename, used) for key, site in sites.items()},
        dims=dims,
        carried={
            key: tuple(Carried(n, rename(one), rename(two)) for n, one, two in entries)
            for key, entries in carried.items()
        },
        statics={k: v for k, v in statics.items() if not _INPUT.search(v)},
        out_features=rename(last.text) if last and _exportable(last, needed) else None,
        exports_out_features=study.exported,
        problems=(*study.problems, *study.interpreter.problems),
        review=(*study.interpreter.review, *_only_elsewhere(study)),
    )


def _misplaced(study: Study) -> Iterator[tuple[ast.AST, str]]:
    """Submodules built where ``__init__`` cannot build them."""
    inside = {id(node): node for cls in study.nodes for node in ast.walk(cls)}
    rounds = [node for node in inside.values() if isinstance(node, ast.While)]
    repeated = {id(node) for loop in rounds for node in ast.walk(loop)}
    for key, module in study.interpreter.built.items():
        assert module.call is not None
        if key not in inside:
            text = ast.unparse(module.call.func)
            yield study.root.info.node, f"a function outside the class builds {text} for it"
        elif key in repeated:
            yield module.call, f"{ast.unparse(module.call.func)} is built in a while loop"
        elif isinstance(module, Instance) and module.info is study.root.info:
            yield module.call, "the class constructs itself"
    for scope, call in _inner_calls(study.root):
        symbol = study.interpreter.project.resolve(call.func, scope)
        if symbol in study.interpreter.project.linen and id(call) not in study.interpreter.built:
            yield call, f"{symbol} is built in an inner function that could not be followed"


def _inner_calls(root: Instance) -> Iterator[tuple[Scope, ast.Call]]:
    """Calls inside lambdas and inner functions of the methods, with the methods' scopes."""
    for cls in root.info.mro:
        for method in cls.methods.values():
            scope = cls.scope.enter(method)
            for inner in ast.walk(method):
                if isinstance(inner, ast.Lambda | ast.FunctionDef) and inner is not method:
                    for node in ast.walk(inner):
                        if isinstance(node, ast.Call):
                            yield scope, node


def _check_inherited(
    study: Study, sites: dict[int, Site], arguments: dict[str, SizeArgument]
) -> None:
    """A class that inherits constructors must use what they build as the base class does."""
    own = {id(node) for node in ast.walk(study.root.info.node)}
    inherited = {key: site for key, site in sites.items() if id(site.call) not in own}
    for parent in study.root.info.parents:
        if not inherited or not parent.linen or parent.find("__call__") is None:
            continue
        base = study.sizes_of(parent.name)
        here = {one.name for one in (*arguments.values(), *study.opaque.values())}
        missing = {one.name for one in base.new_arguments} - here
        extra = [
            name
            for site in inherited.values()
            for name in site.sizes.values()
            if name in study.opaque
        ]
        if missing or extra:
            study.problems.append(
                (
                    study.root.info.node,
                    f"it inherits submodules of {parent.name} and calls them otherwise",
                )
            )


def _first_output(value: Value) -> Value:
    if isinstance(value, Sequence) and value.items:
        return value.items[0]
    if isinstance(value, Choice):
        firsts = [_first_output(one) for one in value.options]
        return firsts[0] if all(one == firsts[0] for one in firsts) else value
    return value


def _exportable(last: Expr, needed: set[str]) -> bool:
    return spellable(last) and {n for n in last.names if ex.is_input(n)} <= needed


# ---- sites


def _site(study: Study, module: Submodule | Instance) -> Site:
    uses = study.root.records.get(id(module.call), [])
    uses = [use for use in uses if use.primary] or uses
    assert module.call is not None
    if isinstance(module, Instance):
        return Site(
            module.call,
            _kind(study, module),
            module.info.name,
            _instance_sizes(study, module, uses),
            reached=_reached(uses),
            class_name=f"{module.lifted}{module.info.node.name}",
        )
    kind = _kind(study, module)
    sizes = {} if not uses else _layer_sizes(study, module, uses)
    if not uses and kind is not SiteKind.FACTORY:
        sizes = _unseen(study, module)
    options = module.options
    if options and not any(_takes_size(study, one) for one in options):
        sizes = {}
    symbol = module.symbol or None
    name = symbol.removeprefix("flax.linen.") if symbol else None
    variable = out_variable(module.call) if options else None
    return Site(module.call, kind, symbol, sizes, variable, _reached(uses), name)


def _takes_size(study: Study, option: Submodule | Instance) -> bool:
    """Whether a class that a local name may hold has a size argument; factories accept one."""
    return not isinstance(option, Instance) or bool(study.sizes_of(option.info.name).new_arguments)


def _kind(study: Study, module: Submodule | Instance) -> SiteKind:
    symbol = _direct_symbol(study, module)
    if isinstance(module, Instance):
        return SiteKind.CLASS if symbol == module.info.name else SiteKind.FACTORY
    return SiteKind.LAYER if symbol == module.symbol and module.symbol else SiteKind.FACTORY


def _direct_symbol(study: Study, module: Submodule | Instance) -> str | None:
    """Symbol the constructor call spells itself, None when a local or field stands between."""
    assert module.call is not None
    cls = study.root.info
    for owner in cls.mro:
        for method in owner.methods.values():
            if any(node is module.call for node in ast.walk(method)):
                scope = owner.scope.enter(method)
                return study.interpreter.project.resolve(module.call.func, scope)
    return None


def _pick(uses: list[Use], key: str) -> tuple[Expr | None, bool]:
    """Size that the uses agree on, and whether every use hangs on a call argument.

    Every call of one submodule meets the same parameter, so any size seen in a call that
    certainly happens is the size. Calls in exclusive branches that disagree say nothing.
    """
    certain = [use for use in uses if None not in use.conditions]
    for use in certain:
        size = use.sizes.get(key)
        if size is not None and spellable(size):
            return size, False
    sizes = [use.sizes.get(key) for use in uses]
    known = [size for size in sizes if size is not None and spellable(size)]
    agreed = known[0] if known and all(size == known[0] for size in known) else None
    return agreed, not certain and agreed is not None


def _layer_sizes(study: Study, module: Submodule, uses: list[Use]) -> dict[str, str]:
    sizes: dict[str, str] = {}
    for key in dict.fromkeys(key for use in uses for key in use.sizes):
        size, conditional = _pick(uses, key)
        sizes[key] = _text(study, module, key, size, conditional)
    return {key: text for key, text in sizes.items() if text}


def _unseen(study: Study, module: Submodule) -> dict[str, str]:
    """Sizes of a layer that no analysed call reaches."""
    from nnx_migrate.sizes.layers import CELLS

    name = module.symbol.removeprefix("flax.linen.")
    needs = name in CELLS or name in _NEED_INPUT
    return {"in_features": _text(study, module, "in_features", None, False)} if needs else {}


_NEED_INPUT = frozenset(
    "Dense DenseGeneral Conv ConvTranspose LayerNorm RMSNorm BatchNorm GroupNorm InstanceNorm "  # noqa: SIM905
    "MultiHeadDotProductAttention MultiHeadAttention SelfAttention".split()
)


def _instance_sizes(study: Study, module: Instance, uses: list[Use]) -> dict[str, str]:
    child = study.sizes_of(module.info.name)
    sizes: dict[str, str] = {}
    unsure = bool(uses) and all(None in use.conditions for use in uses)
    for argument in child.new_arguments:
        size, conditional = _witness(study, child, argument, uses)
        if size is None and argument.optional:
            continue
        conditional = conditional or unsure or argument.optional
        sizes[argument.name] = _text(study, module, argument.name, size, conditional, argument)
    return {key: text for key, text in sizes.items() if text}


def _witness(
    study: Study, child: ClassSizes, argument: SizeArgument, uses: list[Use]
) -> tuple[Expr | None, bool]:
    """Size of a child's argument: read off the call, else off a site inside that has this size."""
    seen = [
        Use(use.module, {"": size}, use.conditions, use.primary)
        for use in uses
        if (size := _passed(argument, use)) is not None
    ]
    if seen:
        return _pick(seen, "")
    for key, site in child.sites.items():
        for name, text in site.sizes.items():
            if text != argument.name:
                continue
            inner = [
                one
                for use in uses
                if isinstance(use.module, Instance)
                for one in use.module.records.get(key, [])
            ]
            size, conditional = _inner(study, site, name, inner)
            if size is not None:
                return size, conditional
    return None, False


def _inner(study: Study, site: Site, name: str, uses: list[Use]) -> tuple[Expr | None, bool]:
    if site.symbol in study.interpreter.project.linen:
        grandchild = study.sizes_of(site.symbol)
        argument = next((a for a in grandchild.new_arguments if a.name == name), None)
        return _witness(study, grandchild, argument, uses) if argument else (None, False)
    return _pick(uses, name)


def _passed(argument: SizeArgument, use: Use) -> Expr | None:
    """Size of a call argument as the caller passes it."""
    if argument.submodule is not None or argument.argument is None:
        return None
    if use.method != argument.method:
        return None
    head, *steps = re.findall(r"-?\w+", argument.argument)
    value: Value | None = use.arguments.get(head)
    for step in steps:
        value = _step(value, step)
    array = as_array(value) if value is not None else None
    if array is None:
        return None
    if argument.axis is not None:
        return array.axis(argument.axis)
    if array.path and array.rank is None and not array.tail:
        return ex.input_shape(array.path)
    rank = array.rank if array.rank is not None else len(array.tail)
    nodes = [size.node if size else ast.Constant(None) for size in array.known(rank)]
    return Expr(ast.Tuple(nodes, ast.Load())) if nodes else None


def _step(value: Value | None, step: str) -> Value | None:
    match value:
        case Sequence(items=items) if _is_index(step) and -len(items) <= int(step) < len(items):
            return items[int(step)]
        case Record(entries=entries):
            return entries.get(step)
        case Argument(path=path):
            return Argument(f"{path}[{step}]" if _is_index(step) else f"{path}.{step}")
    return None


def _is_index(step: str) -> bool:
    return step.removeprefix("-").isdigit()


def _text(
    study: Study,
    module: Submodule | Instance,
    key: str,
    size: Expr | None,
    conditional: bool,
    argument: SizeArgument | None = None,
) -> str:
    """Text of a size; an unknown one becomes an argument of the class under study."""
    assert module.call is not None
    if size is not None:
        inputs = {name for name in size.names if ex.is_input(name)}
        (study.optional if conditional else study.required).update(inputs)
        return size.text
    where = _place(study, module.call)
    if where is None and conditional:
        where = _class_name(module)
    if where is None:
        study.problems.append(
            (module.call, f"the {key} of this submodule is unknown and it is built in a loop")
        )
        return ""
    name = f"{where}_{key}" if key != "in_features" else f"{where}_in_features"
    study.opaque[name] = SizeArgument(
        name,
        argument=argument.argument if argument else None,
        axis=argument.axis if argument else -1,
        submodule=where
        if argument is None or not argument.submodule
        else f"{where}/{argument.submodule}",
        optional=conditional,
    )
    return name


def _place(study: Study, call: ast.Call) -> str | None:
    """Scope name under which a submodule is built; None inside a loop or without one name."""
    for node in study.nodes:
        parents = {
            child: parent for parent in ast.walk(node) for child in ast.iter_child_nodes(parent)
        }
        if call not in parents:
            continue
        current: ast.AST = call
        found: str | None = None
        while current in parents:
            current = parents[current]
            if isinstance(current, _LOOPS):
                return None
            if isinstance(current, ast.Assign) and found is None:
                found = _target_name(current, call)
            if isinstance(current, ast.FunctionDef):
                break
        return _named(call) or found or _auto_name(study, call)
    return None


_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.Lambda)


def _target_name(statement: ast.Assign, call: ast.Call) -> str | None:
    """The attribute of ``self`` that gets ``call``; also in ``self.q, self.k = f(), f()``."""
    target: ast.expr = statement.targets[0]
    match target, statement.value:
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            found = [one for one, value in zip(targets, values, strict=True) if value is call]
            target = found[0] if found else target
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        return target.attr if target.value.id == "self" else None
    return None


def _named(call: ast.Call) -> str | None:
    for keyword in call.keywords:
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
            text = str(keyword.value.value)
            return text if text.isidentifier() else None
    return None


def _auto_name(study: Study, call: ast.Call) -> str | None:
    """Linen's automatic name, counted over the constructor calls of the class in order."""
    module = study.interpreter.built.get(id(call))
    if module is None:
        return None
    kind = _class_name(module)
    before = [one for one in study.interpreter.built.values() if _class_name(one) == kind]
    calls = [one.call for one in before if one.call is not None and _named(one.call) is None]
    return f"{kind}_{calls.index(call)}" if call in calls else None


def _class_name(module: Submodule | Instance) -> str:
    if isinstance(module, Instance):
        return f"{module.lifted}{module.info.node.name}"
    return module.symbol.rpartition(".")[2]


_UNREACHED = (
    "__call__ never reaches this submodule: Linen's init through __call__ makes no parameters for"
    " it, the NNX module has them"
)


def _only_elsewhere(study: Study) -> Iterator[tuple[ast.AST, str]]:
    """Submodules with variables that ``__call__`` never reaches but another method does."""
    if study.root.info.find("__call__") is None:
        return
    for module in study.interpreter.built.values():
        uses = study.root.records.get(id(module.call), [])
        stateless = isinstance(module, Submodule) and module.symbol.endswith("Dropout")
        if uses and not stateless and not any(use.primary for use in uses):
            assert module.call is not None
            yield module.call, _UNREACHED


def _reached(uses: list[Use]) -> str | None:
    """Condition over fields under which some use happens; None when always or unknown."""
    tests: list[ast.expr] = []
    for use in uses:
        if not use.conditions or None in use.conditions:
            return None
        conditions = [one for one in use.conditions if one is not None]
        if any(one.names for one in conditions):
            return None
        nodes = list({one.key: one.node for one in conditions}.values())
        tests.append(nodes[0] if len(nodes) == 1 else ast.BoolOp(ast.And(), nodes))
    unique = list({ast.unparse(one): one for one in tests}.values())
    if not unique:
        return None
    if len(unique) == 2 and _opposite(*unique):
        return None
    return ast.unparse(unique[0] if len(unique) == 1 else ast.BoolOp(ast.Or(), unique))


def _opposite(one: ast.expr, two: ast.expr) -> bool:
    texts = {ast.unparse(one), ast.unparse(two)}
    return any(
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.Not)
        and ast.unparse(node.operand) in texts
        for node in (one, two)
    )


# ---- arguments


def _needed(
    study: Study, sites: dict[int, Site], carried: dict[int, tuple[tuple[str, str, str], ...]]
) -> set[str]:
    """Input sizes that ``__init__`` reads."""
    texts = [text for site in sites.values() for text in site.sizes.values()]
    texts += [text for entries in carried.values() for entry in entries for text in entry[1:]]
    calls = {id(site.call) for site in sites.values()}
    for node in study.nodes:
        texts.extend(_construction_texts(study, node, calls))
    return {name for text in texts for name in _INPUT.findall(text)}


def _construction_texts(study: Study, node: ast.ClassDef, calls: set[int]) -> Iterator[str]:
    """Static texts inside constructor calls and the headers of statements that hold them."""
    for statement in ast.walk(node):
        header: list[ast.AST] = []
        if isinstance(statement, ast.Call) and (id(statement) in calls or _makes_param(statement)):
            header = [*statement.args, *(k.value for k in statement.keywords)]
        elif isinstance(statement, ast.If | ast.IfExp | ast.For) and _holds(statement, calls):
            header = [statement.iter if isinstance(statement, ast.For) else statement.test]
        for one in header:
            yield from _outermost(study, one)


def _outermost(study: Study, node: ast.AST) -> Iterator[str]:
    text = study.interpreter.statics.get(id(node))
    if text is not None:
        yield text
        return
    for child in ast.iter_child_nodes(node):
        yield from _outermost(study, child)


def _makes_param(call: ast.Call) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "self"
        and function.attr == "param"
    )


def _holds(statement: ast.AST, calls: set[int]) -> bool:
    return any(id(node) in calls or _is_param(node) for node in ast.walk(statement))


def _is_param(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _makes_param(node)


def _entered(
    study: Study, sites: dict[int, Site], carried: dict[int, tuple[tuple[str, str, str], ...]]
) -> dict[str, str | None]:
    """Scope name of the first submodule that meets a size nobody knows at a loop's start."""
    before = {name: first for entries in carried.values() for name, first, _ in entries}
    found: dict[str, str | None] = {}
    for site in sites.values():
        for text in site.sizes.values():
            opaque = before.get(text, text)
            if _INPUT.fullmatch(opaque) and ex.opaque_local(ex.input_of(opaque)[0]) is not None:
                found.setdefault(opaque, _first_name(study, site.call))
    return found


def _first_name(study: Study, call: ast.Call) -> str | None:
    """Scope name of what ``call`` builds first; its loop counts from 0."""
    for keyword in call.keywords:
        if keyword.arg == "name":
            return _named(call) or _counted_name(study, call, keyword.value)
    return _auto_name(study, call)


def _counted_name(study: Study, call: ast.Call, name: ast.expr) -> str | None:
    """``f"hidden_{i}"`` in the loop ``for i in range(n)`` or ``for i, x in enumerate(xs)``."""
    parts = name.values if isinstance(name, ast.JoinedStr) else []
    read = {ast.unparse(one.value) for one in parts if isinstance(one, ast.FormattedValue)}
    for node in study.nodes:
        for loop in ast.walk(node):
            if isinstance(loop, ast.For) and any(one is call for one in ast.walk(loop)):
                match loop.iter, loop.target:
                    case ast.Call(func=ast.Name("range"), args=[_]), ast.Name(id=index):
                        pass
                    case ast.Call(func=ast.Name("enumerate"), args=[_]), ast.Tuple(
                        elts=[ast.Name(id=index), _]
                    ):
                        pass
                    case _:
                        continue
                if read == {index}:
                    return "".join(
                        str(getattr(one, "value", "")) if isinstance(one, ast.Constant) else "0"
                        for one in parts
                    )
    return None


def _opaque_argument(
    study: Study, name: str, path: str, submodule: str | None, taken: set[str]
) -> SizeArgument:
    text = f"{ex.opaque_local(path)}_features"
    while text in taken:
        text = f"input_{text}"
    if submodule is None:
        study.problems.append((study.root.info.node, f"the {text} at a loop's start is unknown"))
    optional = name in study.optional - study.required
    return SizeArgument(text, submodule=submodule, optional=optional)


def _name_arguments(
    study: Study, needed: set[str], entered: dict[str, str | None]
) -> dict[str, SizeArgument]:
    """Constructor argument of every input size in use."""
    inputs = {name: ex.input_of(name) for name in sorted(needed)}
    whole = {path for path, axis in inputs.values() if axis != -1}
    paths = list(dict.fromkeys(path for path, _ in inputs.values()))
    first = _first_argument(study)
    taken = {one.name for one in study.root.info.fields} | _local_sizes(study) | set(study.opaque)
    arguments = {}
    named: dict[str, str] = {}  # path -> argument name: axes of one input share theirs
    for name, (path, axis) in inputs.items():
        if ex.opaque_local(path) is not None:
            arguments[name] = _opaque_argument(study, name, path, entered.get(name), taken)
            continue
        is_whole = path in whole
        text = _argument_name(
            path, is_whole, paths == [path] and path == first and not study.opaque
        )
        while text in taken or text in (t for p, t in named.items() if p != path):
            text = f"input_{text}"
        named[path] = text
        optional = name in study.optional - study.required
        arguments[name] = SizeArgument(
            text,
            method=_method_with(study, path),
            argument=path,
            axis=None if is_whole else axis,
            optional=optional,
        )
    return arguments


def _local_sizes(study: Study) -> set[str]:
    """Names that ``__init__`` already gives to sizes that loops change."""
    return {name for entries in study.interpreter.carried.values() for name, _, _ in entries}


def _method_with(study: Study, path: str) -> str:
    """The method whose parameter a path starts with, the initial call first."""
    head = re.findall(r"\w+", path)[0]
    names = ["__call__", *sorted({m for cls in study.root.info.mro for m in cls.methods})]
    for name in names:
        found = study.root.info.find(name)
        if found and head in {one.arg for one in (*found[1].args.args, *found[1].args.kwonlyargs)}:
            return name
    return "__call__"


def _argument_name(path: str, whole: bool, only: bool) -> str:
    leaf = re.sub(r"\W+", "_", path.rpartition(".")[2]).strip("_")
    if whole:
        return f"{leaf}_shape"
    return "in_features" if only else f"{leaf}_features"


def _first_argument(study: Study) -> str | None:
    found = study.root.info.find("__call__")
    names = [one.arg for one in found[1].args.args[1:]] if found else []
    return names[0] if names else None


def _renamer(study: Study, arguments: dict[str, SizeArgument]) -> Callable[[str], str]:
    def spelled(match: re.Match[str]) -> str:
        argument = arguments.get(match.group())
        if argument is None:
            return match.group()
        _, axis = ex.input_of(match.group())
        whole = argument.axis is None and axis is not None
        return f"{argument.name}[{axis}]" if whole else argument.name

    return lambda text: _INPUT.sub(spelled, text)


def _renamed(site: Site, rename: Callable[[str], str], used: set[str]) -> Site:
    variable = site.out_variable
    if variable is not None and not any(variable in text for text in used):
        variable = None
    return Site(
        site.call,
        site.kind,
        site.symbol,
        {key: rename(text) for key, text in site.sizes.items()},
        variable,
        rename(site.reached) if site.reached else None,
        site.class_name,
    )
