"""Edits of spans: what is edited changes, everything else is byte-identical."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_migrate.edit.calls import call
from nnx_migrate.edit.data import EditError
from nnx_migrate.edit.expressions import code_of, expression
from nnx_migrate.edit.rendering import GONE, Renderer, Unrenderable
from nnx_migrate.edit.statements import TAKEN, assign, skip


def renderer(source: str) -> Renderer:
    return Renderer(source, ast.parse(source))


def written(one: Renderer) -> str:
    return one.render_module().code


def named(source: str, **replacements: str) -> Renderer:
    """A renderer that replaces every loaded name of ``replacements``."""
    plain = renderer(source)
    edits = {
        id(node): expression(replacements[node.id])
        for node in ast.walk(plain.tree)
        if isinstance(node, ast.Name) and node.id in replacements
    }
    return plain.with_edits(edits)


ODD = "\ufeff# é\r\nx = [1,\r\n\t2]  # c\r\ndef f(a):  return  a ; \\\r\n  pass"


@pytest.mark.parametrize("source", ["", "x", "\n\n", ODD, "s = 'é' \\\n 'b'"])
def test_without_edits_the_text_is_the_file(source: str) -> None:
    source = source.removeprefix("\ufeff")
    assert written(renderer(source)) == source


def test_a_file_whose_white_space_would_change_is_refused() -> None:
    with pytest.raises(EditError, match="white space"):
        written(named("a\n\x0cdef f(x): pass\nx\n", x="y"))


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
    assert written(named(source, x="NEW")) == after


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
    found = written(named(source, x="a + b"))
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
    assert written(named("x * 2", x=text)) == after


def test_a_tuple_keeps_being_one_argument() -> None:
    assert written(named("f(x)", x="a, b")) == "f((a, b))"


def test_a_number_in_front_of_an_attribute_is_parenthesised() -> None:
    assert written(named("x.real", x="1")) == "(1).real"


def test_edits_nest() -> None:
    source = "outer(inner(x), x)"
    plain = named(source, x="y")
    outer = plain.tree.body[0].value  # type: ignore[attr-defined]
    nested = plain.with_edits(
        {
            id(outer): lambda r: call("new", r.render(outer.args[0])),
            id(outer.args[0]): lambda r: call("around", r.inner(outer.args[0])),
        }
    )
    assert written(nested) == "new(around(inner(y)))"
    assert written(nested.without(outer)) == "outer(around(inner(y)), y)"
    assert written(plain) == "outer(inner(y), y)"


def test_a_replaced_definition_takes_its_decorators_along() -> None:
    plain = renderer("a = 1\n@d\n# c\n@e(2)\ndef f(): pass\nb = 2\n")
    function = plain.tree.body[1]
    assert code_of(plain.render(function)) == "@d\n# c\n@e(2)\ndef f(): pass\n"
    assert written(plain.with_edits({id(function): [skip()]})) == "a = 1\npass\nb = 2\n"


def test_a_generator_that_shares_the_calls_parentheses_keeps_them() -> None:
    plain = renderer("sum(i for i in y)")
    made = plain.tree.body[0].value  # type: ignore[attr-defined]
    assert written(plain.with_edits({id(made.args[0]): expression("z")})) == "sum(z)"


def test_a_value_keeps_the_parentheses_that_it_stands_in() -> None:
    plain = renderer("y = (a +\n     b)")
    value = plain.tree.body[0].value  # type: ignore[attr-defined]
    assert code_of(plain.render(value)) == "(a +\n     b)"


def statements(source: str, **edits: object) -> str:
    """The file with the statements on lines of that number replaced: ``_2=GONE``."""
    plain = renderer(source)
    found = {
        id(node): edits[f"_{node.lineno}"]
        for node in ast.walk(plain.tree)
        if isinstance(node, ast.stmt) and f"_{getattr(node, 'lineno', 0)}" in edits
    }
    return written(plain.with_edits(found))


def test_comments_of_a_statement_that_goes_stay() -> None:
    source = "a = 1\n# above\nb = f(  # inside\n    2\n)  # beside\nc = 3\n"
    after = "a = 1\n# above\n# inside\n# beside\nc = 3\n"
    assert statements(source, _3=GONE) == after
    assert statements(source, _3=TAKEN) == "a = 1\nc = 3\n"


def test_blank_lines_do_not_pile_up_where_a_statement_was() -> None:
    source = "class A:\n    b: int\n\n    c: int\n\n    def f(self):\n        pass\n"
    assert statements(source, _2=GONE, _4=GONE) == "class A:\n    def f(self):\n        pass\n"
    assert statements("a\n\nb\n\nc\n", _3=GONE) == "a\n\nc\n"


def test_a_block_that_nothing_is_left_of_passes() -> None:
    assert statements("if a:\n    b  # why\nc\n", _2=GONE) == "if a:\n    pass\n    # why\nc\n"


def test_statements_in_the_place_of_one_take_its_comments() -> None:
    made = [assign("a", expression("1")), assign("b", expression("2"))]
    source = "if x:\n  # above\n  y()  # beside\n"
    assert statements(source, _3=made) == "if x:\n  # above\n  a = 1  # beside\n  b = 2\n"


def test_a_decorator_that_goes_leaves_its_comments() -> None:
    plain = renderer("# one\n@a  # two\n# three\n@b\ndef f(): pass\n")
    function = plain.tree.body[0]
    first, second = function.decorator_list  # type: ignore[attr-defined]
    assert written(plain.with_edits({id(first): GONE})) == (
        "# one\n# two\n# three\n@b\ndef f(): pass\n"
    )
    assert written(plain.with_edits({id(first): GONE, id(second): GONE})) == (
        "# one\n# two\n# three\ndef f(): pass\n"
    )


def test_edits_reach_into_chains() -> None:
    assert written(named("a or x or b or x", x="y")) == "a or y or b or y"


@pytest.mark.parametrize(
    ("source", "text", "changed"),
    [
        ("f'{x}'", "f('a')", "f'{f(\"a\")}'"),
        ('f"{x} {y:.{x}f}"', "f('a', \"b\")", "f\"{f('a', 'b')} {y:.{f('a', 'b')}f}\""),
        ('f"""{x}"""', "f('a', \"b\")", 'f"""{f(\'a\', "b")}"""'),
    ],
)
def test_strings_of_an_edit_inside_an_f_string_take_other_quotes(
    source: str, text: str, changed: str
) -> None:
    assert written(named(source, x=text)) == changed


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("f'{x=}'", "NEW"),  # the text of the expression is part of the string
        ("f'{x}'", "f('\"')"),  # its own strings have no other quotes to take
    ],
)
def test_an_edit_inside_an_f_string_that_changes_the_string_is_refused(
    source: str, text: str
) -> None:
    with pytest.raises(Unrenderable) as raised:
        written(named(source, x=text))
    assert raised.value.reason
    assert isinstance(raised.value.node, ast.AST)


def test_a_node_without_a_position_is_refused() -> None:
    plain = renderer("def f(a): pass")
    arguments = plain.tree.body[0].args  # type: ignore[attr-defined]
    with pytest.raises(Unrenderable, match="no position"):
        plain.render(arguments)
    with pytest.raises(Unrenderable, match="no position"):
        written(plain.with_edits({id(arguments): expression("b")}))


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
    found = ast.parse(written(named(source, x=text)), mode="eval")

    class Replace(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return ast.parse(text, mode="eval").body if node.id == "x" else node

    expected = Replace().visit(ast.parse(source, mode="eval"))
    assert ast.dump(found) == ast.dump(expected)
