"""Code that sets an attribute of a class, or puts another in its place: the class is lazy, as explicit code
builds and calls what its own file defines."""

import pytest

from tests.rewrite.projects import LINEN, dense
from tests.rewrite.test_forms import auto, reason, said

MODEL = LINEN + dense("A") + "def main(k, x):\n    return A().init(k, x)\n"
HEAD = "import sys\nfrom unittest import mock\n\nimport m\nfrom m import A\n\n\n"
FAKE = "def fake(self, x):\n    return x\n\n\n"

CHANGING = {
    "an attribute": "A.__call__ = fake\n",
    "setattr": "setattr(A, '__call__', fake)\n",
    "delattr": "delattr(A, '__call__')\n",
    "a fixture of pytest": "def test(monkeypatch):\n    monkeypatch.setattr(A, '__call__', fake)\n",
    "a fixture of pytest, by the name": (
        "def test(monkeypatch):\n    monkeypatch.setattr('m.A.__call__', fake)\n"
    ),
    "a mock": "with mock.patch.object(A, '__call__', fake):\n    m.main(0, 1)\n",
    "a mock above a function": "@mock.patch.object(m.A, '__call__')\ndef test(call):\n    m.main(0, 1)\n",
    "a mock by its name": "with mock.patch('m.A.__call__', fake):\n    m.main(0, 1)\n",
    "several": "with mock.patch.multiple(A, __call__=fake):\n    m.main(0, 1)\n",
    "a spy": "def test(mocker):\n    mocker.spy(A, '__call__')\n",
    "a function that sets one": "def put(cls, call):\n    cls.__call__ = call\n\n\nput(A, fake)\n",
    "a function that sets any": (
        "def put(cls, name, value):\n    setattr(cls, name, value)\n\n\nput(A, '__call__', fake)\n"
    ),
    "a loop over classes": "for cls in (A, str):\n    cls.__call__ = fake\n",
    "a local name": "def test():\n    cls = A\n    cls.__call__ = fake\n",
}


@pytest.mark.parametrize("text", CHANGING.values(), ids=CHANGING)
def test_a_class_is_lazy_whose_attributes_are_set(text: str) -> None:
    assert said(auto({"m.py": MODEL, "f.py": HEAD + FAKE + text})) == {"m.A": "lazy"}


REPLACING = {
    "an attribute of the module": "m.A = None\n",
    "setattr": "setattr(m, 'A', None)\n",
    "setattr of any name": "def put(name):\n    setattr(m, name, None)\n",
    "setattr by a function": (
        "def put(module, name):\n    setattr(module, name, None)\n\n\nput(m, 'A')\n"
    ),
    "sys.modules": "setattr(sys.modules['m'], 'A', None)\n",
    "a module by a name": "lib = sys.modules['m']\nsetattr(lib, 'A', None)\n",
    "a mock": "with mock.patch('m.A'):\n    m.main(0, 1)\n",
    "a mock of the module": "with mock.patch.object(m, 'A'):\n    m.main(0, 1)\n",
    "several by their names": "with mock.patch.multiple('m', A=None):\n    m.main(0, 1)\n",
}


@pytest.mark.parametrize("text", REPLACING.values(), ids=REPLACING)
def test_a_class_is_lazy_that_is_replaced_in_its_module(text: str) -> None:
    assert said(auto({"m.py": MODEL, "f.py": HEAD + text})) == {"m.A": "lazy"}


HARMLESS = {
    "another name of the module": "setattr(sys.modules['m'], 'B', None)\n",
    "another function of it": "with mock.patch('m.main'):\n    m.main(0, 1)\n",
    "an attribute of a module made of it": "net = A()\nnet.tag = 3\n",
    "what reads an attribute": "print(getattr(A, '__name__'))\n",
    "a function that reads": "def show(cls):\n    return cls()\n\n\nshow(A)\n",
    "a loop that calls": "for cls in (A, str):\n    cls()\n",
    "a path that has no such member": "with open('logs.A.txt') as file:\n    file.read()\n",
    "a path in a text": "print('see m.A.__call__ for more')\n",
    "a keyword of something else": "print(dict(A=3))\n",
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_what_leaves_the_class_as_it_is_leaves_it_explicit(text: str) -> None:
    assert said(auto({"m.py": MODEL, "f.py": HEAD + text})) == {"m.A": "explicit"}


def test_the_reason_says_what_is_set_where() -> None:
    result = auto({"m.py": MODEL, "f.py": HEAD + "setattr(A, 'x', 3)\n"})
    assert reason(result, "m.A") == (
        "not proven: f.py:8: attributes of the class itself are set here"
    )
