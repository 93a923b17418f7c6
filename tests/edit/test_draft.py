"""A draft changes what it is told to and nothing else."""

from __future__ import annotations

import ast

import pytest

from nnx_migrate.edit.changes import change_import, change_owner, change_words, rename
from nnx_migrate.edit.data import EditError, ImportChange, NewImport
from nnx_migrate.edit.draft import Draft


def drafted(text: str) -> tuple[Draft, ast.Module]:
    tree = ast.parse(text)
    return Draft(text, tree), tree


def first(tree: ast.Module, kind: type) -> ast.AST:
    return next(one for one in ast.walk(tree) if isinstance(one, kind))


ODD = (
    "x = 1  \n\n\n\x0c\nif x :\n\ty = ( 1,\n 2 )  # c\n\tz=x\n# end",
    "x = 1\r\nif x:\r\n    y = 2 \\\r\n      + x\r\n",
    "# -*- coding: utf-8 -*-\nx = 'é'  # ü\n\n\n",
    "x = 1;\n\n\ndef f( a ) :  return  a;  \n",
    "y = 2; x = 1; \\\n z = x\nx\n@(  # @\n  #\n  x\n)\nclass C: x\n\n# x\nx \\\n\n",
    "\n# only then\nif x:\n  if x: x; x\n  # end\n# very end\nx",
)


@pytest.mark.parametrize("text", ODD)
def test_a_draft_without_edits_is_the_text(text: str) -> None:
    draft, _ = drafted(text)
    assert draft.write() == text


@pytest.mark.parametrize("text", ODD)
def test_all_but_the_edited_name_stays_byte_for_byte(text: str) -> None:
    draft, tree = drafted(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "x":
            rename(draft, node, "xx")
    assert draft.write().replace("xx", "x") == text
    assert draft.write().count("xx") == sum(
        isinstance(n, ast.Name) and n.id == "x" for n in ast.walk(tree)
    )


def test_white_space_that_libcst_would_lose_costs_the_edit_and_not_the_white_space() -> None:
    draft, tree = drafted("y\n\x0cx\n")
    node = first(tree, ast.Name)
    assert isinstance(node, ast.Name)
    rename(draft, node, "z")
    with pytest.raises(EditError, match="LibCST changes white space in what begins on line 1"):
        draft.write()


def test_what_does_not_change_need_not_be_readable_to_libcst() -> None:
    text = "x = 1\n\x0c\ny\n  \n\n \n"
    draft, tree = drafted(text)
    node = first(tree, ast.Name)
    assert isinstance(node, ast.Name)
    rename(draft, node, "z")
    assert draft.write() == text.replace("x", "z", 1)


def test_edits_inside_edits_compose() -> None:
    draft, tree = drafted("f(a.b.c(a.b))\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "b":
            change_owner(draft, node, "new")
    assert draft.write() == "f(new.b.c(new.b))\n"


def test_an_import_gets_another_below_it_with_its_indentation() -> None:
    draft, tree = drafted("def f():\n    # why\n    import a  # what\n    a.b\n")
    statement = first(tree, ast.Import)
    assert isinstance(statement, ast.Import)
    after = (NewImport("b.c", alias="d"), NewImport("e", "f"), NewImport("e", "g", "h"))
    change_import(draft, statement, ImportChange(after=after))
    assert draft.write() == (
        "def f():\n    # why\n    import a  # what\n    import b.c as d\n"
        "    from e import f, g as h\n    a.b\n"
    )


def test_new_lines_end_like_the_others() -> None:
    draft, tree = drafted("import a\r\nx = 1\r\n")
    statement = first(tree, ast.Import)
    assert isinstance(statement, ast.Import)
    change_import(draft, statement, ImportChange(after=(NewImport("b"),)))
    assert draft.write() == "import a\r\nimport b\r\nx = 1\r\n"


def test_words_change_between_any_quotes() -> None:
    draft, tree = drafted("x = rb'ab' if y else f'''ab{ab}ab'''\n")
    for kind in (ast.JoinedStr, ast.Constant):
        node = first(tree, kind)
        assert isinstance(node, ast.expr)
        change_words(draft, node, lambda text: text.replace("ab", "c"))
    assert draft.write() == "x = rb'c' if y else f'''c{ab}c'''\n"


def test_two_edits_of_one_place_are_an_error() -> None:
    draft, tree = drafted("x\n")
    name = first(tree, ast.Name)
    assert isinstance(name, ast.Name)
    rename(draft, name, "y")
    with pytest.raises(EditError, match="two edits"):
        rename(draft, name, "z")


def test_lone_carriage_returns_are_an_error_not_a_change() -> None:
    draft, tree = drafted("x = 1\ry = 2\r")
    name = first(tree, ast.Name)
    assert isinstance(name, ast.Name)
    rename(draft, name, "z")
    with pytest.raises(EditError, match="carriage return"):
        draft.write()


def test_a_comment_inside_a_dotted_name_is_never_dropped() -> None:
    draft, tree = drafted("x = (a  # which\n     .b.c)\n")
    node = next(n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == "c")
    change_owner(draft, node, "new")
    with pytest.raises(EditError, match="comment"):
        draft.write()
