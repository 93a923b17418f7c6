"""Properties of the engine over generated files."""

from __future__ import annotations

import ast

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rewrite.projects import caller, dense, looped, rewrite, texts

FAST = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)

# Top-level text that is never Linen, and must come out byte for byte.
FILLERS = st.sampled_from(
    [
        "# a comment\n",
        "#\tüñï — ☃\n",
        "\n",
        "\n\n\n",
        "   \n",
        "\t\n",
        "\f\n",
        "x = 1 ;  y = 2\n",
        "s = '''keep\n  this   \n'''\n",
        "def f( a,b = 2 ):\n\treturn a+b   # tabs\n",
        "if  True :\n  pass\n",
        "z = (1,\n      2)\n",
        "# end \\\n",
    ]
)
KINDS = st.sampled_from(["dense", "refused", "residual", "field", "setup"])


def klass(kind: str, name: str) -> str:
    match kind:
        case "dense":
            return dense(name)
        case "refused":
            return looped(name)
        case "residual":
            return caller(name, "x + nn.Dense(x.shape[-1])(x)")
        case "field":
            return caller(name, "nn.Dense(self.width)(nn.relu(x))", "    width: int = 4\n")
        case _:
            return (
                f"class {name}(nn.Module):\n"
                "    def setup(self):\n"
                "        self.inner = nn.Dense(3)\n\n"
                "    def __call__(self, x):\n"
                "        return self.inner(x)\n\n\n"
            )


@st.composite
def layouts(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A file, and the texts in it that must survive, in order."""
    fillers = draw(st.lists(FILLERS, min_size=1, max_size=5))
    kinds = draw(st.lists(KINDS, min_size=1, max_size=3))
    newline = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    ends = draw(st.booleans())
    parts, survivors = ["import flax.linen as nn\n"], []
    for index, filler in enumerate(fillers):
        parts.append(filler)
        survivors.append(filler)
        if index < len(kinds):
            text = klass(kinds[index], f"C{index}")
            parts.append(text)
            if kinds[index] == "refused":
                survivors.append(text)
    text = "".join(parts)
    if not ends:
        text = text.rstrip("\n")
        survivors[-1] = survivors[-1].rstrip("\n")
    return text.replace("\n", newline), [one.replace("\n", newline) for one in survivors]


@FAST
@given(layouts())
def test_text_outside_of_what_changes_is_byte_identical(layout: tuple[str, list[str]]) -> None:
    before, survivors = layout
    files = {"m.py": before}
    after = texts(rewrite(files), files)["m.py"]
    at = 0
    for one in survivors:
        found = after.find(one, at)
        assert found >= 0, (one, after)
        at = found + len(one)


@FAST
@given(layouts())
def test_the_file_keeps_its_line_ends(layout: tuple[str, list[str]]) -> None:
    before, _ = layout
    files = {"m.py": before}
    after = texts(rewrite(files), files)["m.py"]
    kinds = {"\r\n": (1, 1), "\n": (0, 1), "\r": (1, 0)}
    newline = next(one for one in kinds if one in before)
    lines = after.count(newline)
    assert lines > 0
    expected = tuple(lines * one for one in kinds[newline])
    assert (after.count("\r"), after.count("\n")) == expected
    assert after.endswith(("\n", "\r")) == before.endswith(("\n", "\r"))


@FAST
@given(layouts())
def test_rewriting_twice_is_rewriting_once(layout: tuple[str, list[str]]) -> None:
    files = {"m.py": layout[0]}
    once = texts(rewrite(files), files)
    ast.parse(once["m.py"])
    assert texts(rewrite(once), once) == once


@FAST
@given(
    kinds=st.lists(KINDS, min_size=1, max_size=5),
    parents=st.lists(st.integers(0, 4), min_size=5, max_size=5),
    builds=st.booleans(),
)
def test_the_books_balance_for_any_mix_of_classes(
    kinds: list[str], parents: list[int], builds: bool
) -> None:
    text = "import flax.linen as nn\n\n\n"
    for index, kind in enumerate(kinds):
        text += klass(kind, f"C{index}")
        other = parents[index] % (index + 1)
        if builds:
            text += caller(f"B{index}", f"nn.Dense(2)(C{other}()(x))")
        text += f"def act{index}(x):\n    return nn.relu(x)\n\n\n"
    result = rewrite({"m.py": text})
    assert result.references.balanced
    assert result.call_sites.balanced
    names = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)}
    assert {one.name.removeprefix("m.") for one in result.classes} == names
    assert all(one.reason for one in result.classes if one.outcome.value == "refused")
    refused = {one.name for one in result.classes if one.outcome.value == "refused"}
    cut_by = {one.cut_by for one in result.classes if one.cut_by}
    assert cut_by <= refused
    assert bool(result.references.refused) == bool(refused)
