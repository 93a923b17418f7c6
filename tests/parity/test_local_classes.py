"""Classes local to functions, made from the statements they hang on."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nnx_migrate.parity.instantiation.local_classes import (
    NotAlone,
    find_local,
    place_of,
    recorded_arguments,
)

Source = Callable[[str], str]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    """Write a module of the text and return its name."""
    monkeypatch.syspath_prepend(tmp_path)
    names: list[str] = []

    def write(text: str) -> str:
        name = f"local_{tmp_path.name.replace('-', '_')}_{len(names)}"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        names.append(name)
        return name

    yield write
    for name in names:
        sys.modules.pop(name, None)


def made(module: str, name: str = "make.<locals>.C") -> Any:
    return find_local(module, name)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("    class C:\n        v = 3\n", 3),
        ("    n = 2\n    m = n + 1\n    class C:\n        v = property(lambda self: m)\n", 3),
        ("    class Base:\n        v = 3\n    class C(Base):\n        pass\n", 3),
        ("    import math\n    class C:\n        v = math.floor(3.5)\n", 3),
        ("    def three():\n        return 3\n    class C:\n        v = property(lambda s: three())\n", 3),
        ("    if True:\n        class C:\n            v = 3\n        raise ValueError\n", 3),
        ("    with open(__file__) as file:\n        class C:\n            v = 3\n", 3),
        ("    try:\n        class C:\n            v = 3\n    finally:\n        raise ValueError\n", 3),
        ("    v = 1\n    v += 2\n    class C:\n        pass\n    C.v = 4\n    class C:\n        v = property(lambda s: w)\n    w = v\n", 3),
    ],
    ids=["alone", "closure", "base", "import", "function", "if", "with", "try", "bound again"],
)  # fmt: skip
def test_a_class_is_made_from_what_it_hangs_on(written: Source, body: str, value: int) -> None:
    name = written(f"def make():\n{body}    raise AssertionError('the function itself ran')\n")
    assert made(name)().v == value


def test_a_class_in_a_method_has_the_name_and_the_module_it_had(written: Source) -> None:
    name = written("class T:\n    def make(self):\n        class C: pass\n        return C\n")
    cls = made(name, "T.make.<locals>.C")
    real = getattr(sys.modules[name], "T")().make()  # noqa: B009
    assert (cls.__module__, cls.__qualname__) == (real.__module__, real.__qualname__)


def test_the_same_class_is_found_every_time_and_one_inside_it_too(written: Source) -> None:
    name = written("def make():\n    class C:\n        class D: pass\n")
    assert made(name) is made(name)
    assert made(name, "make.<locals>.C.D") is made(name).D


TWICE = """\
def make():
    n = 1
    class Base:
        v = n
    class C(Base):
        def f(self): return self.v
    n = 5
    class Base:
        v = n + 1
    class C(Base):
        def f(self): return self.v * 2
"""


def test_of_two_classes_of_one_name_the_first_runs_without_what_stands_below(
    written: Source,
) -> None:
    name = written(TWICE)
    first, last = made(name, "make.<locals>.C:1"), made(name)
    assert (first().f(), last().f()) == (1, 12)
    assert [place_of(one)[1] for one in (first, last, first.__base__, last.__base__)] == [
        "make.<locals>.C:1",
        "make.<locals>.C",
        "make.<locals>.Base:?",  # without methods, nothing tells where it stands
        "make.<locals>.Base:?",
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("make.<locals>.C:3", "which class C of make"),
        ("make.<locals>.C:0", "which class C of make"),
        ("make.<locals>.C:?", "which class C of make"),
        ("make.<locals>.C.D:1", "several classes D"),
    ],
)
def test_a_number_that_no_class_has_is_refused(written: Source, name: str, reason: str) -> None:
    with pytest.raises(NotAlone, match=reason):
        made(written(TWICE), name)


def test_a_first_class_that_reads_what_is_bound_below_it_is_refused(written: Source) -> None:
    text = "def make():\n    class C:\n        def f(self): return late\n    late = 1\n    class C: pass\n"
    with pytest.raises(NotAlone, match="reads late, which make binds below it"):
        made(written(text), "make.<locals>.C:1")


def test_what_the_class_does_not_read_is_not_run(written: Source) -> None:
    name = written(
        "def make(unused):\n    x = 1 / 0\n    class C:\n        def f(self, x): return x\n"
    )
    assert made(name)().f(3) == 3


def test_self_of_a_test_case_is_an_instance(written: Source) -> None:
    text = (
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
        "        class C:\n            def f(self_): self.assertEqual(1, 2)\n"
    )
    with pytest.raises(AssertionError, match="1 != 2"):
        made(written(text), "T.test.<locals>.C")().f()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def make(n):\n    class C:\n        v = n\n", "it reads n, an argument of make"),
        ("def make(*n):\n    class C:\n        v = n\n", "n"),
        ("class T:\n    def make(self):\n        class C:\n            v = self\n", "self"),
        ("def make():\n    for i in (1, 2):\n        class C:\n            v = i\n", "a loop"),
        ("def make():\n    n = 1 / 0\n    class C:\n        v = n\n", "ZeroDivisionError"),
        ("def make():\n    pass\n", "C"),
        ("if 1:\n    def make():\n        class C: pass\n", "0 statements"),
        ("def make(): pass\ndef make():\n    class C: pass\n", "2 statements"),
    ],
)
def test_what_only_the_running_function_knows_is_refused(
    written: Source, text: str, reason: str
) -> None:
    name = "T.make.<locals>.C" if text.startswith("class") else "make.<locals>.C"
    with pytest.raises(NotAlone, match=reason):
        made(written(text), name)


def test_a_function_inside_a_function_is_refused(written: Source) -> None:
    name = written("def a():\n    def b():\n        class C: pass\n")
    with pytest.raises(NotAlone, match="itself local"):
        made(name, "a.<locals>.b.<locals>.C")


def test_a_module_that_is_not_there_is_an_import_error() -> None:
    with pytest.raises(ImportError):
        made("no_such_module_of_ours")


def test_the_module_itself_is_left_alone(written: Source) -> None:
    name = written("n = 1\ndef make():\n    global n\n    class C: pass\n    n = 2\n")
    made(name)
    assert isinstance(sys.modules[name], types.ModuleType)
    assert vars(sys.modules[name])["n"] == 1


READS = (
    "def make({}):\n{}    class C:\n        v = property(lambda self: width)\n    raise KeyError\n"
)


def given(name: str, **arguments: Any) -> None:
    recorded_arguments(name, "make", repr(arguments), lambda text: arguments)


def test_arguments_that_were_recorded_are_read(written: Source) -> None:
    name = written(READS.format("width, *, other", ""))
    given(name, width=3)
    first = made(name)
    given(name, width=4)
    second = made(name)
    given(name, width=3)
    assert (first().v, second().v, made(name) is first) == (3, 4, True)


def test_a_condition_on_an_argument_chooses_as_it_did(written: Source) -> None:
    body = "    class C:\n        v = 1\n    if flag:\n        class C:\n            v = 2\n"
    name = written(f"def make(flag):\n{body}")
    values = []
    for flag in (True, False):
        given(name, flag=flag)
        values.append(made(name)().v)
    assert values == [2, 1]


@pytest.mark.parametrize(
    ("parameters", "body", "words"),
    [
        ("width", "", "reads width"),
        ("width", "    width = width + 1\n", "binds again"),
        ("width", "    width += 1\n", "binds again"),
    ],
)
def test_arguments_that_are_not_certain_are_refused(
    written: Source, parameters: str, body: str, words: str
) -> None:
    name = written(READS.format(parameters, body))
    if body:
        given(name, width=3)
    with pytest.raises(NotAlone, match=words):
        made(name)


def test_a_class_that_a_lift_made_is_known_by_where_it_was_found(written: Source) -> None:
    body = (
        "    class C:\n        v = 1\n    C = type('Lifted', (C,), {'__module__': 'elsewhere'})\n"
    )
    name = written(f"def make():\n{body}")
    assert place_of(made(name)) == (name, "make.<locals>.C")
    assert place_of(int) == ("builtins", "int")
