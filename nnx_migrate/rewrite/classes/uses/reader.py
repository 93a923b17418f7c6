"""How methods read what the module holds: parameters, variables, ``self.<Linen method>()``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from nnx_migrate.constructs.module_api import CARRIED, OWN_ONLY, RECIPES
from nnx_migrate.edit.calls import call, named, with_comments
from nnx_migrate.edit.expressions import (
    Expression,
    attribute,
    contents,
    dotted_node,
    function,
    string,
)
from nnx_migrate.edit.rendering import Renderer, Replacement
from nnx_migrate.edit.walking import comments_in
from nnx_migrate.rewrite.classes.data import ClassRefused
from nnx_migrate.rewrite.classes.items import (
    Item,
    ItemKind,
    is_attribute_name,
    own_nodes,
    receiver_of,
    self_call,
)
from nnx_migrate.rewrite.classes.reading.children import Children
from nnx_migrate.rewrite.classes.uses.calls import carried_call, mutable_in_init
from nnx_migrate.rewrite.classes.uses.layer_fields import field_text, lost_field
from nnx_migrate.rewrite.classes.uses.narrowing import asking, certain_reads
from nnx_migrate.rewrite.classes.uses.reads import OF_FIELD, Reads, stream_attribute, stream_name
from nnx_migrate.rewrite.classes.uses.references import Remarks
from nnx_migrate.rewrite.classes.variables.submodule_names import (
    ASKING,
    LEAVES,
    asks_child,
    refusal,
)
from nnx_migrate.rewrite.classes.variables.values import makes_array, reading, replacing
from nnx_migrate.source.walking import given_values, is_name, walk

RULE = "module-api"


@dataclass
class Reader:
    """Finds the reads.

    Args:
      params: attributes that hold a Param, and the attribute each is stored under.
      variables: the same for other variables.
      own: names that the class defines itself (fields, methods), which shadow Linen's.
      optional: attributes that may hold None.
      layer_builder: what builds an attribute's layer from ``rngs``, given its parameters.
      resolve: the symbol of an expression.
      children: which expressions are submodules.
      is_lazy: whether a class of the project is lazy: its modules have Linen's interface.
      presence_text: what ``self.has_variable(...)`` is in ``__init__``, if it is another text there.
      is_made_later: whether a call asks for a variable that the method makes afterwards.
      variable_items: items of the variables that attributes hold.
      fields: the fields that nothing sets: their values are the constructor's.
    """

    items: Mapping[int, Item]
    params: Mapping[str, str]
    variables: Mapping[str, str]
    own: frozenset[str]
    remarks: Remarks
    layer_builder: Callable[[str, ast.expr, Renderer], Expression]
    resolve: Callable[[ast.expr], str | None]
    children: Children
    is_lazy: Callable[[str], bool]
    presence_text: Callable[[ast.FunctionDef, ast.Call], str | None]
    is_made_later: Callable[[ast.FunctionDef, ast.Call], bool]
    variable_items: Mapping[str, Item] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    fields: frozenset[str] = frozenset()
    reads: Reads = field(default_factory=Reads)

    def read(self, method: ast.FunctionDef) -> None:
        """Add the edits of one method."""
        receiver = receiver_of(method)
        local = self._local_variables(method)
        chains: set[int] = set()
        for node in own_nodes(method):
            if isinstance(node, ast.Subscript) and id(node) not in chains:
                self._chain(node, receiver, chains)
        tests, certain = asking(method), certain_reads(method)
        called: set[int] = set()
        for node in own_nodes(method):
            if isinstance(node, ast.Call):
                self._call(node, receiver, method)
                called.add(id(node.func))
        for node in own_nodes(method):
            if isinstance(node, ast.Attribute) and id(node) not in chains:
                is_open = id(node) not in certain
                if not (is_open and id(node) in tests and node.attr in self.optional):
                    self._attribute(node, receiver, local, is_open=is_open)
                self._api(node, method, is_called=id(node) in called)
            elif isinstance(node, ast.Assign | ast.AugAssign):
                self._assignment(node, receiver, local)

    def _local_variables(self, method: ast.FunctionDef) -> Mapping[str, Item]:
        names: dict[str, Item] = {}
        for node in own_nodes(method):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    item = self.items.get(id(value))
                    if item is not None and item.kind is ItemKind.VARIABLE:
                        names[name] = item
        return names

    def _assignment(
        self, node: ast.Assign | ast.AugAssign, receiver: str, local: Mapping[str, Item]
    ) -> None:
        """``v.value = x`` of a variable."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in (one for whole in targets for one in walk(whole)):
            match target:
                case ast.Attribute(attr="value", ctx=ast.Store()) if self._is_variable(
                    target.value, receiver, local
                ):
                    self._hold(node, replacing(node, target))

    def _hold(self, node: ast.AST, text: Replacement) -> None:
        self.reads.call[id(node)] = text
        self.reads.value_edits[id(node)] = text

    def _attribute(
        self, node: ast.Attribute, receiver: str, local: Mapping[str, Item], *, is_open: bool
    ) -> None:
        if node.attr == "value" and self._is_variable(node.value, receiver, local):
            item = self._variable(node.value, receiver, local)
            array = item is not None and makes_array(item, self.resolve)
            self._hold(node, reading(node.value, array=array))
            return
        if not is_name(node.value, receiver):
            return
        name = node.attr
        if isinstance(node.ctx, ast.Load) and name in self.params:
            stored = self.params[name]
            edit = (
                dotted_node(f"self.{stored}")
                if is_attribute_name(stored)
                else call("getattr", "self", string(stored))
            )
            if name in self.optional and is_open:
                self.remarks.imports.add("nnm")
                self.reads.call[id(node)] = call("nnm.read", edit)
            else:
                self.reads.call[id(node)] = contents(edit)
        elif isinstance(node.ctx, ast.Load) and self.variables.get(name, name) != name:
            self.reads.call[id(node)] = dotted_node(f"self.{self.variables[name]}")

    def _api(self, node: ast.Attribute, method: ast.FunctionDef, *, is_called: bool) -> None:
        """An attribute that Linen gives every module, of this one or of a submodule."""
        if id(node) in self.reads.handled_nodes or not isinstance(node.ctx, ast.Load):
            return
        name, owner = node.attr, ast.unparse(node.value)
        is_own = owner == receiver_of(method)
        if is_own and name in self.own:
            return
        if not is_own and not self.children.holds(node.value, method):
            self._of_some_submodule(node, method)
            return
        if not is_own and self.children.has_own(node.value, method, name):
            return
        refused = RECIPES if is_own else {**RECIPES, **OWN_ONLY}
        if name in refused:
            raise ClassRefused(node, f"{owner}.{name} has no NNX counterpart", refused[name], RULE)
        classes = [] if is_own else self.children.classes(node.value, method)
        if name == "variables" and any(one and self.is_lazy(one) for one in classes):
            return
        if name == "variables" and is_own and self._makes_more(node, method):
            reason = "the variables are read here before the method has made all of them"
            raise ClassRefused(node, reason, "read them after that", RULE)
        if name == "variables":
            self.remarks.imports.add("nnm")
            self.reads.call[id(node)] = lambda renderer: call(
                "nnm.variables_of", renderer.render(node.value)
            )
        elif not is_called:
            if name in CARRIED or name == "make_rng" or name in OWN_ONLY:
                raise ClassRefused(node, f"{owner}.{name} is handed on", "call it here", RULE)
            if not is_own:
                self._field(node, method)

    def _makes_more(self, node: ast.Attribute, method: ast.FunctionDef) -> bool:
        """Whether a method makes variables, parameters aside, below a place."""
        inside = (self.items[id(one)] for one in walk(method) if id(one) in self.items)
        made = (one.call for one in inside if one.kind is ItemKind.VARIABLE)
        return any((one.lineno, one.col_offset) > (node.lineno, node.col_offset) for one in made)

    def _of_some_submodule(self, node: ast.Attribute, method: ast.FunctionDef) -> None:
        """An attribute of what may be one of several submodules: ``layer.variables`` in a loop."""
        problem = lost_field(self.children.layers, node)
        if node.attr in {*RECIPES, *OWN_ONLY, "variables"} and not self.children.defines(node.attr):
            reason = f"{ast.unparse(node)} of one of several submodules has no NNX counterpart"
            problem = ClassRefused(node, reason, "read it where the submodule is built", RULE)
        if problem is not None and self.children.may_hold(node.value, method):
            raise problem

    def _field(self, node: ast.Attribute, method: ast.FunctionDef) -> None:
        """A field of a submodule."""
        name = field_text(self.children.classes(node.value, method), node)
        if name is not None:
            self.reads.call[id(node)] = lambda renderer: attribute(
                renderer.render(node.value), name
            )

    def _is_variable(self, node: ast.expr, receiver: str, local: Mapping[str, Item]) -> bool:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver:
                return attr in self.variables
            case _:
                return self._variable(node, receiver, local) is not None

    def _variable(self, node: ast.expr, receiver: str, local: Mapping[str, Item]) -> Item | None:
        """The item of a variable that the class itself makes."""
        match node:
            case ast.Name(id=name):
                return local.get(name)
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver:
                return self.variable_items.get(attr)
            case ast.Call():
                item = self.items.get(id(node))
                return item if item is not None and item.kind is ItemKind.VARIABLE else None
            case _:
                return None

    def _call(self, node: ast.Call, receiver: str, method: ast.FunctionDef) -> None:
        self._tied_call(node, receiver)
        name = self_call(node, receiver)
        if name is None:
            self._child_call(node, method)
        elif name in self.own:
            return
        elif name == "is_initializing":
            self.remarks.imports.add("nnm")
            self.reads.call[id(node)] = call("nnm.is_initializing")
            self.reads.static[id(node)] = "True"
        elif name in CARRIED:
            self.remarks.imports.add("nnm")
            self.reads.call[id(node)] = carried_call(name, node)
            if name == "is_mutable_collection":
                self.reads.static[id(node)] = mutable_in_init(node)
            elif name == "has_variable":
                static = self.presence_text(method, node)
                self.reads.static |= {} if static is None else {id(node): static}
                if static == "False":
                    self._made_later(name, node)
            elif name == "get_variable" and self.is_made_later(method, node):
                self._made_later(name, node)
        elif name == "make_rng":
            self._stream(node)

    def _made_later(self, name: str, node: ast.Call) -> None:
        self.reads.call[id(node)] = carried_call(name, node, named("made_later", "True"))

    def _child_call(self, node: ast.Call, method: ast.FunctionDef) -> None:
        """``self.child.has_variable(...)``."""
        match node.func:
            case ast.Attribute(value=owner, attr=name) if name in CARRIED:
                if self.children.holds(owner, method) and not self.children.has_own(
                    owner, method, name
                ):
                    classes = self.children.classes(owner, method)
                    project = self.children.project
                    if name in ASKING and any(asks_child(project, one, node) for one in classes):
                        raise refusal(node, node)
                    self.remarks.imports.add("nnm")
                    self.reads.call[id(node)] = carried_call(name, node)

    def _stream(self, node: ast.Call) -> None:
        values = given_values(node)
        name = "params" if not values else None
        match values:
            case [ast.Constant(value=str() as text)] if is_attribute_name(text):
                name = text
            case [ast.Attribute(value=ast.Name(id="self"), attr=field)] if field in self.fields:
                name = f"{OF_FIELD}{field}"
        if name is None or self._may_meet({name, *self.reads.streams.values()}):
            raise ClassRefused(
                node, "the name of the random stream is computed", "write it out", RULE
            )
        self.reads.streams[id(node)] = name
        drawn = call(f"self.{stream_attribute(name, self.own)}")
        self.reads.call[id(node)] = lambda renderer: with_comments(
            drawn, comments_in(renderer.sources.pairs[id(node)]), renderer.unit
        )
        self.reads.static[id(node)] = f"nnm.make_rng(rngs, {stream_name(name)})"
        self.remarks.imports.add("nnm")

    def _may_meet(self, streams: Collection[str]) -> bool:
        """Whether a stream that a field names may be another one, or that of the class's own variables.

        Linen counts all draws of one stream together.
        """
        made = any(one.is_own_variable for one in self.items.values())
        of_fields = any(one.startswith(OF_FIELD) for one in streams)
        return of_fields and (made or len(streams) > 1)

    def _chain(self, node: ast.Subscript, receiver: str, chains: set[int]) -> None:
        """``self.child.variables["params"]["a"]["kernel"]`` -> ``self.child.a.kernel[...]``."""
        keys: list[str] = []
        inner: ast.expr = node
        names = []
        while isinstance(inner, ast.Subscript):
            if not (isinstance(inner.slice, ast.Constant) and isinstance(inner.slice.value, str)):
                return
            keys.insert(0, inner.slice.value)
            names.append(id(inner))
            inner = inner.value
        if not (isinstance(inner, ast.Attribute) and inner.attr == "variables" and len(keys) > 1):
            return
        owner = _path(inner.value)
        if owner is None or owner[0] != receiver or not all(map(is_attribute_name, keys)):
            return
        if len(owner) > 1 and self.is_lazy(self.children.attributes.get(owner[1]) or ""):
            return
        is_own = len(owner) == 1 and len(keys) == 2
        known = {*self.params, *self.variables} if is_own else LEAVES
        if keys[-1] not in known:
            return  # the dict of a submodule, for all that is known
        last = self.params.get(keys[-1], self.variables.get(keys[-1])) if is_own else None
        chains |= {*names, id(inner)}
        steps = ["self", *owner[1:], *keys[1:-1], last or keys[-1]]
        self.reads.call[id(node)] = contents(".".join(steps))

    def _tied_call(self, node: ast.Call, receiver: str) -> None:
        """``self.head.apply({"params": {"kernel": e.T}}, h)`` of a layer of ``setup``."""
        match node.func:
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id=name), attr=child), attr="apply"
            ) if name == receiver:
                pass
            case _:
                return
        match node.args:
            case [ast.Dict(keys=[ast.Constant(value="params")], values=[params]), *rest]:
                pass
            case _:
                raise ClassRefused(
                    node,
                    "the variables given to a submodule are not spelled out",
                    'pass {"params": {...}}, or call the submodule',
                    RULE,
                )
        self.remarks.imports.add("nnm")
        self.reads.handled_nodes.add(id(node.func))

        def make(renderer: Renderer) -> Expression:
            build = function(["rngs"], self.layer_builder(child, params, renderer))
            layer = call("nnm.with_params", build, renderer.render(params))
            arguments = map(renderer.argument, rest)
            return call(layer, *arguments, *map(renderer.keyword, node.keywords))

        self.reads.call[id(node)] = make


def _path(node: ast.expr) -> tuple[str, ...] | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return (node.id, *parts) if isinstance(node, ast.Name) else None
