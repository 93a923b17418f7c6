"""Which of several classes of one name each use means, and where nobody can tell."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest

from nnx_migrate.source.names import Opaque
from nnx_migrate.source.project import Project, parse

HEAD = "import flax.linen as nn\nimport jax\nKEPT = []\n"
FIRST = "class C(nn.Module):\n    first: int = 0\n"
LAST = "class C(nn.Module):\n    last: int = 0\n"
USER = """\
class User(nn.Module):
    width: int = 3

    @nn.compact
    def __call__(self, x):
        return C()(x) + self.param("b", nn.initializers.zeros, (self.width,))
"""
RUN = "y = User().apply({}, x, rngs={})\n"


def function(*parts: str, head: str = "def f(x, flag):\n") -> str:
    return HEAD + head + indent("".join(parts), "    ")


def meant(text: str) -> list[str | None]:
    """For each ``C(...)``, from top to bottom: the field of the class it builds, None if unknown."""
    project = Project({"m": parse("m", "m.py", text)})
    found: list[str | None] = []
    calls = [one for one in ast.walk(project.modules["m"].tree) if isinstance(one, ast.Call)]
    scope = next(cls.scope for cls in project.classes.values() if cls.node.name == "C")
    for call in sorted(calls, key=lambda one: (one.lineno, one.col_offset)):
        if isinstance(call.func, ast.Name) and call.func.id == "C":
            cls = project.classes.get(project.resolve(call.func, scope) or "")
            unsure = cls is None or cls.repeated
            found.append(None if cls is None or unsure else cls.fields[0].name)
    return found


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (function(FIRST, "C()\n", LAST, "C()\n"), ["first", "last"]),
        (function(FIRST, "with x:\n    C()\n", LAST, "if flag:\n    C()\n"), ["first", "last"]),
        (function(FIRST, "for i in x:\n    C()\n", LAST, "[C() for i in x]\n"), ["first", "last"]),
        (function(FIRST, LAST, "g = lambda: C()\n"), ["last"]),
        (function(FIRST, LAST, "def g():\n    return C()\n"), ["last"]),
        (function(FIRST, LAST, USER), ["last"]),
        (function(FIRST, "def g(a=C()):\n    pass\n", LAST), ["first"]),
        (function(FIRST, USER, RUN, LAST, USER, RUN, "C()\n"), ["first", "last", "last"]),
        (function(FIRST, USER, "for i in x:\n    " + RUN, LAST), ["first"]),
        (function(FIRST, "D = C\nD()\nC()\n", LAST), ["first"]),
        (
            function(FIRST, "C()\n", LAST, "C()\n", head="async def f(x, flag):\n"),
            ["first", "last"],
        ),
    ],
)
def test_a_use_means_the_nearest_class_above_it(text: str, fields: list[str]) -> None:
    assert meant(text) == fields


@pytest.mark.parametrize(
    "parts",
    [
        ("C()\n", FIRST, LAST),
        (FIRST, "if flag:\n", indent(LAST, "    "), "C()\n"),
        (FIRST, "with x:\n", indent(LAST, "    "), "C()\n"),
        (FIRST, "for i in x:\n    C()\n", indent(LAST, "    ")),
        (FIRST, LAST, "C = x\nC()\n"),
        (FIRST, LAST, "del C\nC()\n"),
        (FIRST, LAST, "import C\nC()\n"),
        (FIRST, LAST, "(C := x)\nC()\n"),
        (FIRST, LAST, "def g():\n    nonlocal C\n    C = x\ng()\nC()\n"),
        (FIRST, LAST, "def g(C):\n    C()\n"),
        (FIRST, LAST, "def g():\n    global C\n    C()\n"),
        (FIRST, "g = lambda: C()\n", LAST),
        (FIRST, "g = (C() for i in x)\n", LAST),
        (FIRST, "def g():\n    C()\ng()\n", LAST),
        (FIRST, LAST, "exec(x)\nC()\n"),
        (FIRST, LAST + "    def again(self):\n        C()\n"),
    ],
)
def test_a_use_that_may_mean_either_is_unknown(parts: tuple[str, ...]) -> None:
    text = function(*parts)
    assert meant(text) == [None] * text.count("C()")


def changed(old: str, new: str) -> str:
    assert old in USER
    return USER.replace(old, new)


STATIC = "    width: int = 3\n"
BODY = "        return C()(x)"


@pytest.mark.parametrize(
    ("user", "run"),
    [
        (USER, "model = User()\n"),
        (USER, "model = User().bind({})\n"),
        (USER, "y = User().apply({}, x, method=lambda m, x: m)\n"),
        (USER, "y = User().apply({}, x, capture_intermediates=x)\n"),
        (USER, "y = User().apply({}, x, **x)\n"),
        (USER, "y = jax.jit(User().apply)({}, x)\n"),
        (USER, "y = jax.vmap(lambda v: User().apply(v, x))(x)\n"),
        (USER, "KEPT.append(User)\n"),
        (USER, "class Other(User):\n    pass\n"),
        (USER, "if flag:\n    class User:\n        pass\n" + RUN),
        ("@x\n" + USER, RUN),
        (changed("(nn.Module)", "(x)"), RUN),
        (changed("(nn.Module)", "(nn.Module, metaclass=x)"), RUN),
        (changed("@nn.compact", "@x"), RUN),
        (changed(STATIC, STATIC + "    make = lambda s: C()\n"), RUN),
        (changed(BODY, "        KEPT.append(self)\n" + BODY), RUN),
        (changed(BODY, "        KEPT.append(self.clone())\n" + BODY), RUN),
        (changed(BODY, "        KEPT.append(self.param)\n" + BODY), RUN),
        (changed(BODY, "        KEPT.append(super())\n" + BODY), RUN),
        (changed(BODY, "        KEPT.append(lambda: C())\n" + BODY), RUN),
        (changed(BODY, "        yield C()\n" + BODY), RUN),
    ],
)
def test_a_class_that_may_run_below_the_next_of_the_name_leaves_it_unknown(
    user: str, run: str
) -> None:
    text = function(FIRST, user, run, LAST, "C()\n")
    assert meant(text) == [None] * text.count("C()")


def test_a_use_below_the_next_class_of_the_name_is_no_use_above_it() -> None:
    text = function(FIRST, USER, RUN, LAST, RUN)
    assert meant(text) == [None]


def test_globals_of_one_name_are_unknown_because_importers_may_read_either() -> None:
    assert meant(HEAD + "x = 3\n" + FIRST + "C()\n" + LAST + "C()\n") == [None, None]


def test_equal_assignments_that_read_the_name_do_not_agree() -> None:
    text = function(FIRST, "model = C()\n", LAST, "model = C()\n", "model\n")
    project = Project({"m": parse("m", "m.py", text)})
    scope = project.classes["m.f.<locals>.C"].scope
    binding = scope.lookup("model")
    assert isinstance(binding, Opaque)
