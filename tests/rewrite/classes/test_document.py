"""Docstrings say what to pass for the arguments that the conversion adds."""

from __future__ import annotations

import pytest

from nnx_migrate.edit.expressions import code_of
from nnx_migrate.edit.page import Page
from nnx_migrate.model import SizeArgument
from nnx_migrate.rewrite.classes.writing.document import (
    describe,
    docstring_with_arguments,
    init_docstring,
)
from nnx_migrate.rewrite.classes.writing.layout import Layout
from tests.rewrite.projects import only, rewrite

HEADER = "import flax.linen as nn\nfrom helpers import strange\n\n\n"
BODY = """\
    features: int = 3

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.features)({value})
"""


def rewritten(docstring: str, value: str = "x") -> str:
    source = f"class M(nn.Module):\n{docstring}{BODY.format(value=value)}"
    return (only(rewrite({"m.py": HEADER + source})) or "").partition("\n\n\n")[2]


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        (SizeArgument("in_features", argument="x"), "size of the last axis of x."),
        (SizeArgument("x_axis_1", argument="x", axis=1), "size of axis 1 of x."),
        (SizeArgument("x_shape", argument="x", axis=None), "the shape of x."),
        (SizeArgument("n", "encode", "x"), "size of the last axis of x of encode."),
        (
            SizeArgument("c_features", argument="c", optional=True),
            "size of the last axis of c, where a call needs it.",
        ),
        (
            SizeArgument("out_in_features", submodule="block/out"),
            "size of the last axis of the input of block/out.",
        ),
        (
            SizeArgument("with_c", argument="c", fact="given", default=False),
            "whether c is given in the first call.",
        ),
        (
            SizeArgument("init_train", argument="train", fact="truth", default=True),
            "whether train is true in the first call.",
        ),
    ],
)
def test_an_argument_in_words(argument: SizeArgument, text: str) -> None:
    assert describe(argument) == text


WIDTH_OF_X = [SizeArgument("in_features", argument="x")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '"""A layer."""',
            ('"""A layer.\n\n    Args:\n        in_features: size of the last axis of x.\n    """'),
        ),
        (
            "r'''A layer.\n\n    More.\n    '''",
            (
                "r'''A layer.\n\n    More.\n\n    Args:\n"
                "        in_features: size of the last axis of x.\n    '''"
            ),
        ),
        (
            '"""A.\r\n\r\n    B."""',
            (
                '"""A.\r\n\r\n    B.\r\n\r\n    Args:\r\n'
                '        in_features: size of the last axis of x.\r\n    """'
            ),
        ),
    ],
)
def test_a_docstring_gets_a_paragraph(before: str, after: str) -> None:
    assert docstring_with_arguments(before, WIDTH_OF_X, "    ", "    ") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '"""A layer.\n\n  Args:\n    width: its width.\n  """',
            '"""A layer.\n\n  Args:\n    width: its width.\n    in_features: size of the last axis of x.\n  """',
        ),
        (
            '"""A.\n\n  Attributes:\n      width: its width,\n        in all.\n\n  Returns:\n    y.\n  """',
            (
                '"""A.\n\n  Attributes:\n      width: its width,\n        in all.\n'
                "      in_features: size of the last axis of x.\n\n  Returns:\n    y.\n"
                '  """'
            ),
        ),
        (
            '"""A.\n\n  Args:\n\n  B."""',  # a list without entries is no list
            '"""A.\n\n  Args:\n\n  B.\n\n  Args:\n    in_features: size of the last axis of x.\n  """',
        ),
    ],
)
def test_arguments_join_those_that_the_docstring_lists(before: str, after: str) -> None:
    assert docstring_with_arguments(before, WIDTH_OF_X, "  ", "  ") == after


def test_entries_keep_to_the_width_of_the_file() -> None:
    found = docstring_with_arguments('"""A layer."""', WIDTH_OF_X, "    ", "    ", width=40)
    assert found is not None
    assert found.splitlines()[3:] == [
        "        in_features: size of the last",
        "            axis of x.",
        '    """',
    ]


@pytest.mark.parametrize("literal", ["'A layer.'", '"A " "layer."', '"""A""" "B"', '("""A""")'])
def test_a_docstring_that_is_not_one_literal_in_triple_quotes_stays(literal: str) -> None:
    assert docstring_with_arguments(literal, WIDTH_OF_X, "    ", "    ") is None


def test_a_class_with_a_docstring_documents_every_argument() -> None:
    text = rewritten('    """A layer."""\n\n')
    assert text.startswith(
        'class M(nnx.Module):\n    """A layer.\n\n'
        "    Args:\n"
        '        in_features: size of the last axis of x.\n    """\n'
    )
    assert "rngs: nnx.Rngs):\n        self.features" in text


def test_a_class_without_one_documents_what_a_name_does_not_say() -> None:
    text = rewritten("", "strange(x)")
    assert (
        '        """Dense_0_in_features: size of the last axis of the input of Dense_0."""\n'
        in text
    )


def test_a_class_without_one_stays_without_where_names_say_it() -> None:
    assert '"""' not in rewritten("")


def test_a_docstring_that_must_stay_is_made_up_for_in_init() -> None:
    text = rewritten("    'A layer.'\n\n", "strange(x)")
    assert "    'A layer.'\n" in text
    assert '"""Dense_0_in_features: size of the last axis of the input of Dense_0."""' in text


def test_what_a_lazy_submodule_measures_itself_is_not_documented() -> None:
    loop = (
        "class M(nn.Module):\n    n: int = 2\n\n    @nn.compact\n    def __call__(self, x):\n"
        "        for i in range(self.n):\n            x = nn.Dense(3)(strange(x))\n        return x\n"
    )
    text = only(rewrite({"m.py": HEADER + loop})) or ""
    assert 'setattr(self, f"Dense_{i}", nn.Dense(3))' in text
    assert '"""' not in text


def test_several_arguments_stand_on_lines_of_their_own() -> None:
    two = [
        SizeArgument("a_in_features", submodule="a"),
        SizeArgument("b_in_features", submodule="b"),
    ]
    (found,) = init_docstring(two, Layout("\n", 4, Page("    ")))
    assert code_of(found).splitlines() == [
        '"""Build the layers.',
        "",
        "        Args:",
        "            a_in_features: size of the last axis of the input of a.",
        "            b_in_features: size of the last axis of the input of b.",
        '        """',
    ]
