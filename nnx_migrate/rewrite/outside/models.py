"""Named models: ``model = Net(...)`` and every use of that name, rewritten together or not at all."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from nnx_migrate.edit.calls import call as made_call
from nnx_migrate.edit.expressions import Expression, dotted
from nnx_migrate.edit.rendering import Renderer
from nnx_migrate.edit.statements import Statement, assign, line
from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.keep import kept_lines
from nnx_migrate.rewrite.outside.built import bad_argument, class_of, linen_part
from nnx_migrate.rewrite.outside.data import Draft, OutsideContext
from nnx_migrate.rewrite.outside.messages import (
    NEW_VALUES,
    RULE,
    constructor_message,
    lacking,
    note_init,
)
from nnx_migrate.rewrite.outside.places import Place, Places
from nnx_migrate.rewrite.outside.sites import (
    METHODS,
    RECIPES,
    Site,
    TracedInit,
    arguments_of,
    traced_init,
)
from nnx_migrate.rewrite.outside.sizes import Sizes, Unknown, is_pure
from nnx_migrate.rewrite.outside.text import Make, with_first, with_last, without_key
from nnx_migrate.source.classes import ClassInfo
from nnx_migrate.source.names import Assignment
from nnx_migrate.source.project import Module, Project, Scope
from nnx_migrate.source.walking import walk

_HARMLESS = frozenset({"print", "repr", "str"})
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)
_BETWEEN = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.BoolOp)


@dataclass
class Uses:
    """What is done with the name of a model."""

    sites: list[Site] = field(default_factory=list)
    handles: list[ast.Attribute] = field(default_factory=list)  # ``model.apply`` without a call
    reads: list[ast.Attribute] = field(default_factory=list)  # fields, and methods in method=
    nodes: list[ast.Name] = field(default_factory=list)
    problem: str | None = None


@dataclass(frozen=True)
class NamedModel:
    """``name = Class(...)`` in one statement of a function or module."""

    project: Project
    places: Places
    context: OutsideContext
    draft: Draft
    statement: ast.Assign
    name: str
    call: ast.Call
    cls: ClassInfo

    def convert(self) -> None:
        """Rewrite the model and all its uses, or refuse all of them."""
        uses = self._uses()
        try:
            self._check(uses)
            self._rewrite(uses)
        except Unknown as problem:
            self._refuse(uses, str(problem))

    # ---- what is done with the name

    def _uses(self) -> Uses:
        uses = Uses()
        place = self.places[self.statement]
        binding = place.scope.lookup(self.name)
        if not (isinstance(binding, Assignment) and binding.value is self.call):
            uses.problem = f"the name {self.name} is bound more than once"
        if isinstance(place.frame, ast.ClassDef):
            uses.problem = "it is an attribute of a class"
        for other in self.places:
            node = other.node
            if isinstance(node, ast.Name) and node.id == self.name and self._is_it(node, other):
                uses.nodes.append(node)
                problem = self._use(node, uses)
                uses.problem = uses.problem or problem
        if isinstance(place.frame, ast.Module):
            uses.problem = uses.problem or self._beyond()
        return uses

    def _is_it(self, node: ast.Name, place: Place) -> bool:
        binding = place.scope.lookup(self.name)
        same = isinstance(binding, Assignment) and binding.value is self.call
        return same and isinstance(node.ctx, ast.Load)

    def _use(self, node: ast.Name, uses: Uses) -> str | None:
        parent = self.places.parent(node)
        if isinstance(parent, ast.Attribute):
            return self._attribute(parent, uses)
        if isinstance(parent, ast.Call) and node in parent.args:
            function = parent.func
            if isinstance(function, ast.Name) and function.id in _HARMLESS:
                return None
        statement = ast.unparse(self.places.statement(node)).split("\n")[0]
        return f"the model is handed on in `{_short(statement)}` (line {node.lineno})"

    def _attribute(self, node: ast.Attribute, uses: Uses) -> str | None:
        above = self.places.parent(node)
        if node.attr in METHODS and self.cls.find(node.attr) is None:
            if isinstance(above, ast.Call) and above.func is node:
                uses.sites.append(self._site(above))
            else:
                uses.handles.append(node)
            return None
        uses.reads.append(node)
        if any(one.name == node.attr for one in self.cls.fields):
            return None
        if isinstance(above, ast.keyword) and above.arg == "method" and self.cls.find(node.attr):
            return None
        return f"{self.name}.{node.attr} is used (line {node.lineno})"

    def _site(self, call: ast.Call) -> Site:
        scope = self.places[call].scope
        return Site(call, self.cls, lambda node: self.project.resolve(node, scope), self._lacking())

    def _beyond(self) -> str | None:
        """Uses of a global from classes of this module or from other modules."""
        symbol = f"{self.places.module.name}.{self.name}"
        for module in self.project.modules.values():
            if self.name not in module.text:
                continue
            if module is not self.places.module and self._is_taken(module.tree, module, symbol):
                return f"{module.name} uses it too"
        for cls in self.project.linen.values():
            if cls.module is self.places.module:
                for node in walk(cls.node):
                    if isinstance(node, ast.Name) and node.id == self.name:
                        return f"the name {self.name} occurs in the class {cls.name}"
        return None

    def _is_taken(self, tree: ast.Module, module: Module, symbol: str) -> bool:
        if self.places.module.name in module.stars:
            return True
        targets = {getattr(one, "target", None) for one in module.table.values()}
        if symbol in targets:
            return True
        return any(
            isinstance(node, ast.Attribute)
            and node.attr == self.name
            and self.project.resolve(node, Scope(module)) == symbol
            for node in walk(tree)
        )

    # ---- checks

    def _check(self, uses: Uses) -> None:
        if uses.problem is not None:
            raise Unknown(uses.problem)
        lines = kept_lines(self.places.module)
        places = (self.call, *(one.call for one in uses.sites), *uses.handles)
        if any(one.lineno in lines for one in places):
            raise Unknown("a use of it is kept by a comment")
        staying = linen_part(self.project, self.cls, self.context)
        if staying is not None:
            raise Unknown(f"{self.cls.name} holds {staying}, which stays Linen")
        scope = self.places[self.call].scope
        bad = bad_argument(self.project, self.call, scope, self.context, self.draft)
        if bad is not None:
            raise Unknown(bad)
        if not uses.sites and not uses.handles:
            raise Unknown("nothing in this file shows how its variables are made")
        for site in uses.sites:
            site.check()
        for handle in uses.handles:
            if handle.attr != "apply" and self._traced(handle) is None:
                raise Unknown(f"{self.name}.{handle.attr} is used without a call")

    # ---- forms

    def _rewrite(self, uses: Uses) -> None:
        inits = [one for one in uses.sites if one.kind == "init"]
        traced = any(one.attr == "init" for one in uses.handles)
        if len(inits) == 1 and not traced and self._is_straight(inits[0], uses):
            self._instance(inits[0], uses)
        elif not inits and not traced and not self._wanted():
            self.draft.edits[id(self.call)] = _called("nnm.abstract", self.call)
            self._applied(uses)
        else:
            self._definition(uses)
        self.draft.imports.add("nnm")

    def _wanted(self) -> bool:
        return any(not one.optional for one in self._lacking())

    def _lacking(self) -> tuple[SizeArgument, ...]:
        """The size arguments that the constructor call does not pass."""
        return lacking(self.call, self.cls, self.context)

    def _instance(self, init: Site, uses: Uses) -> None:
        """The name is the NNX module itself, from its construction or from ``init`` on."""
        sizes = init.sizes()
        if self._is_known_before(init, sizes):
            self.draft.edits[id(self.call)] = with_last(
                "nnm.build", self.call, lambda r: init.keywords_of_build(r, sizes)
            )
        else:
            self._built_late(init, sizes)
        self.draft.edits[id(init.call)] = without_key(
            "nnm.variables_of", lambda _: dotted(self.name), init.call
        )
        note_init(self.draft, init)
        self._applied(uses)

    def _built_late(self, init: Site, sizes: Sizes) -> None:
        statement = self.places.statement(init.call)
        lines = self.places.module.lines
        start = lines.span(statement).start
        indent = lines.text[lines.line_start(start) : start]
        if indent.strip():
            raise Unknown("init shares its line with another statement")
        name = self.name

        def make(renderer: Renderer) -> list[Statement]:
            built = made_call("nnm.build", name, *init.keywords_of_build(renderer, sizes))
            return [assign(name, built), line(renderer.inner(statement))]

        self.draft.edits[id(statement)] = make
        self._partial()

    def _partial(self) -> None:
        self.draft.edits[id(self.call)] = _called("functools.partial", self.call)
        self.draft.imports.add("functools")

    def _definition(self, uses: Uses) -> None:
        """The name stays a recipe; every use builds what it needs from it."""
        if uses.reads or len(uses.nodes) > len(uses.sites) + len(uses.handles):
            raise Unknown(f"{self.name} is read as a module where no module is built yet")
        applied = [one for one in uses.handles if one.attr == "apply"]
        if applied and self._wanted():
            raise Unknown(f"{self.name}.apply is used without a call, which shows no sizes")
        found = [(site, site.sizes()) for site in uses.sites]
        made = [(one, self._init_function(one)) for one in uses.handles if one not in applied]
        for handle, function in made:
            self.draft.edits[id(handle)] = function
            self.draft.note(handle, RULE, NEW_VALUES, "call_site")
        for site, sizes in found:
            if site.kind == "init":
                self.draft.edits[id(site.call)] = _initialised(site, self.name, sizes)
                note_init(self.draft, site)
            else:
                self._apply(site, made_call("nnm.abstract", self.name, *arguments_of(sizes)))
        for handle in applied:
            abstract = made_call("nnm.abstract", self.name)
            self.draft.edits[id(handle)] = made_call("nnm.apply_fn", abstract)
        self._partial()

    def _traced(self, handle: ast.Attribute) -> TracedInit | None:
        scope = self.places[handle].scope
        return traced_init(
            handle,
            self.places.parent,
            self.cls,
            self._lacking(),
            lambda node: self.project.resolve(node, scope),
        )

    def _init_function(self, handle: ast.Attribute) -> Expression:
        traced = self._traced(handle)
        assert traced is not None
        return traced.function(
            lambda extra: made_call("nnm.build", self.name, *extra), frozenset({self.name})
        )

    def _applied(self, uses: Uses) -> None:
        for site in uses.sites:
            if site.kind == "apply":
                self._apply(site, dotted(self.name))
        for handle in uses.handles:
            self.draft.edits[id(handle)] = made_call("nnm.apply_fn", self.name)

    def _apply(self, site: Site, model: Expression) -> None:
        self.draft.edits[id(site.call)] = with_first("nnm.apply", lambda _: model, site.call)

    # ---- where things stand

    def _is_straight(self, init: Site, uses: Uses) -> bool:
        """Whether ``init`` follows the construction in the same block, before any other use."""
        first, second = self.statement, self.places.statement(init.call)
        body = self._block(first)
        if second not in body or not isinstance(second, _SIMPLE):
            return False
        if body.index(second) <= body.index(first) or self._is_conditional(init.call):
            return False
        end = second.end_lineno or second.lineno
        for node in uses.nodes:
            if node is init.attribute.value or node.lineno > end:
                continue
            if self.places[node].frame is self.places[first].frame:
                return False
            if not self._is_later(node, end):
                return False
        return True

    def _block(self, statement: ast.stmt) -> list[ast.stmt]:
        parent = self.places.parent(statement)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, [])
            if isinstance(block, list) and statement in block:
                return block
        return []

    def _is_conditional(self, node: ast.AST) -> bool:
        while not isinstance(node, ast.stmt):
            if isinstance(node, _BETWEEN):
                return True
            above = self.places.parent(node)
            assert above is not None
            node = above
        return False

    def _is_later(self, node: ast.Name, end: int) -> bool:
        """Whether the function that uses the name cannot run before line ``end``."""
        frame: ast.AST = self.places[node].frame
        while self.places.parent(frame) is not None and not isinstance(
            frame, ast.FunctionDef | ast.AsyncFunctionDef
        ):
            if isinstance(frame, ast.ClassDef | ast.Lambda):
                return False
            above = self.places.parent(frame)
            assert above is not None
            frame = above
        if not isinstance(frame, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        return not any(
            isinstance(one.node, ast.Name) and one.node.id == frame.name and one.node.lineno <= end
            for one in self.places
        )

    def _is_known_before(self, init: Site, sizes: Sizes) -> bool:
        """Whether key and sizes can be written where the model is constructed."""
        reads = [init.key(), *sizes.reads]
        if not all(is_pure(one, init.resolve) for one in reads):
            return False
        names = {n.id for one in reads for n in walk(one) if isinstance(n, ast.Name)}
        frame = self.places[self.statement].frame
        begin, end = self.statement.lineno, self.places.statement(init.call).lineno
        return not any(
            isinstance(one.node, ast.Name)
            and one.node.id in names
            and isinstance(one.node.ctx, ast.Store | ast.Del)
            and one.frame is frame
            and begin <= one.node.lineno <= end
            for one in self.places
        )

    def _refuse(self, uses: Uses, reason: str) -> None:
        message = f"{constructor_message(self.cls, self._lacking())}; {reason}"
        self.draft.refuse(self.call, RULE, message, "constructor")
        for site in uses.sites:
            self.draft.refuse(site.call, RULE, f"{reason}; {RECIPES[site.kind]}", "call_site")
        for handle in uses.handles:
            self.draft.refuse(handle, RULE, f"{reason}; {RECIPES[handle.attr]}", "call_site")


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _called(function: str, call: ast.Call) -> Make:
    return with_first(function, lambda renderer: renderer.render(call.func), call)


def _initialised(site: Site, name: str, sizes: Sizes) -> Make:
    def built(renderer: Renderer) -> Expression:
        return made_call("nnm.build", name, *site.keywords_of_build(renderer, sizes))

    return without_key("nnm.variables_of", built, site.call)


def named_models(
    project: Project, places: Places, context: OutsideContext, draft: Draft
) -> Iterator[NamedModel]:
    """Every ``name = Class(...)`` of a converted class."""
    for place in places:
        match place.node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                cls = class_of(project, call.func, place.scope, context)
                if cls is not None:
                    yield NamedModel(project, places, context, draft, place.node, name, call, cls)
