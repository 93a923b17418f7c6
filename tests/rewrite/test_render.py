"""Edits of spans: what is edited changes, everything else is byte-identical."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_migrate.rewrite.render import Renderer, Replacement, Unrenderable
from nnx_migrate.source.project import Project, parse


def renderer(source: str) -> Renderer:
    module = parse("m", "m.py", source)
    return Renderer(Project({"m": module}), module)


def named(source: str, **replacements: Replacement) -> Renderer:
    """A renderer that replaces every loaded name of ``replacements``."""
    plain = renderer(source)
    edits = {
        id(node): replacements[node.id]
        for node in ast.walk(plain.module.tree)
        if isinstance(node, ast.Name) and node.id in replacements
    }
    return plain.with_edits(edits)


ODD = "\ufeff# é\r\nx = [1,\r\n\t2]  # c\r\n\x0cdef f(a):  return  a ; \\\r\n  pass"


@pytest.mark.parametrize("source", ["", "x", "\n\n", ODD, "s = 'é' \\\n 'b'"])
def test_without_edits_the_text_is_the_file(source: str) -> None:
    source = source.removeprefix("\ufeff")
    assert renderer(source).render_module() == source


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("f( x ,y)  # x", "f( NEW ,y)  # x"),
        ("'é' + x\r\n", "'é' + NEW\r\n"),
        ("x.y.z", "NEW.y.z"),
        ("def f(a: x = x) -> x:\n\treturn x", "def f(a: NEW = NEW) -> NEW:\n\treturn NEW"),
        ("@x\nclass C(x, k=x): pass", "@NEW\nclass C(NEW, k=NEW): pass"),
        ("[x for x in x if x]", "[NEW for NEW in NEW if NEW]"),
        ('f"a{x}b{x:>{x}}"', 'f"a{NEW}b{NEW:>{NEW}}"'),
        ('"é" f"{x}" "{x}"', '"é" f"{NEW}" "{x}"'),
        ("f'''\n{x}\n'''", "f'''\n{NEW}\n'''"),
    ],
)
def test_only_the_edited_spans_change(source: str, after: str) -> None:
    assert named(source, x="NEW").render_module() == after


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("x * 2", "(a + b) * 2"),
        ("2 - x", "2 - (a + b)"),
        ("-x", "-(a + b)"),
        ("x.real", "(a + b).real"),
        ("x[0]", "(a + b)[0]"),
        ("x(1)", "(a + b)(1)"),
        ("f(*x)", "f(*(a + b))"),
        ("f(x, k=x)", "f(a + b, k=a + b)"),
        ("y = x", "y = a + b"),
        ("return_(y[x])", "return_(y[a + b])"),
        ("{x: x}", "{(a + b): a + b}"),
        ("(x)", "(a + b)"),
    ],
)
def test_a_sum_gets_parentheses_where_it_would_bind_differently(source: str, after: str) -> None:
    found = named(source, x="a + b").render_module()
    assert found == after
    expected = ast.parse(source.replace("x", "(a + b)"))
    assert ast.dump(ast.parse(found)) == ast.dump(expected)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("(a + b)", "(a + b) * 2"),
        ("(a) + (b)", "((a) + (b)) * 2"),
        ("a.b", "a.b * 2"),
        ("f(a)", "f(a) * 2"),
        ("a, b", "(a, b) * 2"),
        ("(a, b)", "(a, b) * 2"),
        ("lambda: 0", "(lambda: 0) * 2"),
        ("a if b else c", "(a if b else c) * 2"),
    ],
)
def test_parentheses_are_added_only_where_there_are_none(text: str, after: str) -> None:
    assert named("x * 2", x=text).render_module() == after


def test_a_tuple_keeps_being_one_argument() -> None:
    assert named("f(x)", x="a, b").render_module() == "f((a, b))"


def test_a_number_in_front_of_an_attribute_is_parenthesised() -> None:
    assert named("x.real", x="1").render_module() == "(1).real"


def test_edits_nest() -> None:
    source = "outer(inner(x), x)"
    plain = named(source, x="y")
    call = plain.module.tree.body[0].value  # type: ignore[attr-defined]
    nested = plain.with_edits(
        {
            id(call): lambda r: f"new({r.render(call.args[0])})",
            id(call.args[0]): lambda r: f"<{r.inner(call.args[0])}>",
        }
    )
    assert nested.render_module() == "new(<inner(y)>)"
    assert nested.without(call).render_module() == "outer(<inner(y)>, y)"
    assert plain.render_module() == "outer(inner(y), y)"


def test_a_replaced_definition_takes_its_decorators_along() -> None:
    plain = renderer("a = 1\n@d\n# c\n@e(2)\ndef f(): pass\nb = 2\n")
    function = plain.module.tree.body[1]
    assert plain.render(function) == "@d\n# c\n@e(2)\ndef f(): pass"
    after = plain.with_edits({id(function): "pass"}).render_module()
    assert after == "a = 1\npass\nb = 2\n"


def test_a_generator_that_shares_the_calls_parentheses_keeps_them() -> None:
    plain = renderer("sum(i for i in y)")
    call = plain.module.tree.body[0].value  # type: ignore[attr-defined]
    assert plain.with_edits({id(call.args[0]): "z"}).render_module() == "sum(z)"


def test_a_value_that_spans_lines_can_stand_alone() -> None:
    plain = renderer("y = (a +\n     b)")
    value = plain.module.tree.body[0].value  # type: ignore[attr-defined]
    assert plain.render(value) == "a +\n     b"
    assert plain.value(value) == "(a +\n     b)"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("f'{x=}'", "NEW"),  # the text of the expression is part of the string
        ("f'{x}'", "f('"),
        ("f'{x}'", "a b"),
        ("f'{x}'", ""),
    ],
)
def test_an_edit_inside_an_f_string_that_changes_the_string_is_refused(
    source: str, text: str
) -> None:
    with pytest.raises(Unrenderable) as raised:
        named(source, x=text).render_module()
    assert raised.value.reason
    assert isinstance(raised.value.node, ast.AST)


def test_a_node_without_a_position_is_refused() -> None:
    plain = renderer("def f(a): pass")
    arguments = plain.module.tree.body[0].args  # type: ignore[attr-defined]
    with pytest.raises(Unrenderable, match="no position"):
        plain.render(arguments)
    with pytest.raises(Unrenderable, match="no position"):
        plain.with_edits({id(arguments): "b"}).render_module()


NAMES = st.sampled_from(["x", "y", "é"])
EXPRESSIONS = st.recursive(
    NAMES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" + ", "*", " and "]), inner).map("".join),
        inner.map(lambda e: f"f({e}, k={e})"),
        inner.map(lambda e: f"({e})[{e}]"),
        inner.map(lambda e: f"[{e},  {e}]"),
        inner.map(lambda e: f"({e}).a"),
    ),
    max_leaves=6,
)


@given(EXPRESSIONS, st.sampled_from(["z", "a + b", "a, b", "lambda: 0", "1", "not a"]))
def test_replacing_names_gives_the_tree_with_those_names_replaced(source: str, text: str) -> None:
    found = ast.parse(named(source, x=text).render_module(), mode="eval")

    class Replace(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return ast.parse(text, mode="eval").body if node.id == "x" else node

    expected = Replace().visit(ast.parse(source, mode="eval"))
    assert ast.dump(found) == ast.dump(expected)
