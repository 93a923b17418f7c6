"""Decorators that keep a class for others to build keep the lazy form of an explicit one."""

from __future__ import annotations

import pytest

from nnx_migrate.model import SizeArgument
from tests.rewrite.outside.converting import convert, convert_modules

NAMED = "def register(name):\n    def add(cls):\n{}\n    return add\n"
ONE = "def register(cls):\n{}\n"

BOTH = """\
def register(cls=None, *, name=None):
    def add(net):
        KNOWN[name or net.__name__] = net
        return net

{}
"""
EITHER = BOTH.format("    return add(cls) if cls is not None else add")
FIRST = BOTH.format("    if cls is None:\n        return add\n    return add(cls)")

METHODS = """\
class Registry:
    known = {}

    def named(self, name):
        def add(cls):
            self.known[name] = cls
            return cls

        return add

    @classmethod
    def add(cls, net):
        cls.known[net.__name__] = net
        return net

    @staticmethod
    def store(net):
        KNOWN["a"] = net
        return net

    @classmethod
    @wrap
    def wrapped(cls, net):
        cls.known["a"] = net
        return net


"""
KEPT = {
    "by its own name": (ONE.format("    KNOWN[cls.__name__] = cls\n    return cls"), "register"),
    "in a list": (ONE.format("    KNOWN.append(cls)\n    return cls"), "register"),
    "beside options": (
        "def register(cls, kind='net'):\n    KNOWN.setdefault(kind, cls)\n    return cls\n",
        "register",
    ),
    "under a condition": (
        ONE.format("    if issubclass(cls, nn.Module):\n        KNOWN['a'] = cls\n    return cls"),
        "register",
    ),
    "by a given name": (
        NAMED.format("        KNOWN[name] = cls\n        return cls"),
        "register('a')",
    ),
    "by a method of a global": (
        METHODS + "MODELS = Registry()\n",
        "MODELS.named('a')",
    ),
    "by a class method": (METHODS, "Registry.add"),
    "by a static method": (METHODS, "Registry.store"),
    "without arguments, where there may be some": (EITHER, "register"),
    "with some, where there may be none": (EITHER, "register(name='a')"),
    "with an empty call": (FIRST, "register()"),
    "without one": (FIRST, "register"),
    "if it is called with one": (
        BOTH.format("    return add if not callable(cls) else add(cls)"),
        "register",
    ),
}
OTHERS = {
    "a method of a class itself": (METHODS, "Registry.named('a')"),
    "a method of several globals": (
        METHODS + "MODELS = Registry()\nMODELS = other()\n",
        "MODELS.named('a')",
    ),
    "a decorated method": (METHODS, "Registry.wrapped"),
    "a method of another's": ("from other import MODELS\n", "MODELS.named('a')"),
    "another class": (ONE.format("    KNOWN['a'] = cls\n    return Other"), "register"),
    "perhaps nothing": (
        ONE.format("    if KNOWN:\n        return cls\n    KNOWN['a'] = cls"),
        "register",
    ),
    "a name that is bound again": (
        ONE.format("    KNOWN['a'] = cls\n    cls = wrap()\n    return cls"),
        "register",
    ),
    "an attribute that is set": (
        ONE.format("    cls.kind = 'a'\n    KNOWN['a'] = cls\n    return cls"),
        "register",
    ),
    "handed on": (ONE.format("    keep(cls)\n    return cls"), "register"),
    "a member of the class": (ONE.format("    KNOWN[cls.kind] = cls\n    return cls"), "register"),
    "one of two functions": (
        NAMED.format(
            "        KNOWN[name] = cls\n        return cls\n    if name:\n        return 1"
        ),
        "register('a')",
    ),
    "a function that is bound again": (
        NAMED.format("        KNOWN[name] = cls\n        return cls\n    add = wrap(add)"),
        "register('a')",
    ),
    "the ways the other way round": (
        BOTH.format("    return add if cls is not None else add(cls)"),
        "register",
    ),
    "a test of something else": (
        BOTH.format("    return add(cls) if name is not None else add"),
        "register",
    ),
    "something in place of the class": (EITHER, "register('a')"),
    "the class by its name": (EITHER, "register(cls=None)"),
    "entries of a dict": (EITHER, "register(**{'name': 'a'})"),
    "more beside": (
        BOTH.format("    KNOWN['a'] = cls\n    return add(cls) if cls is not None else add"),
        "register",
    ),
    "beside a decorator that does more": (
        ONE.format("    KNOWN['a'] = cls\n    return cls")
        + "def mark(cls):\n    cls.mark = 1\n    return cls\n",
        "mark\n@register",
    ),
}


def decorated(functions: str, decorator: str) -> str:
    return f"KNOWN = {{}}\n{functions}@{decorator}\nclass Kept(MLP):\n    pass\n"


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_is_the_lazy_form(name: str) -> None:
    functions, decorator = KEPT[name]
    text, result = convert(decorated(functions, decorator), {"m.Kept"})
    assert f"@lazily({decorator})\nclass Kept" in text
    assert "lazily" in result.imports
    assert result.mentions == {"m.Kept"}


@pytest.mark.parametrize("name", OTHERS)
def test_a_decorator_that_may_do_more_stays(name: str) -> None:
    functions, decorator = OTHERS[name]
    text, _ = convert(decorated(functions, decorator), {"m.Kept"})
    assert f"@{decorator}\nclass Kept" in text


def test_a_class_that_stays_linen_is_kept_as_it_is() -> None:
    functions, decorator = KEPT["in a list"]
    text, _ = convert(decorated(functions, decorator), {"m.MLP"})
    assert "@register\nclass Kept" in text


def test_each_of_several_keeps_it() -> None:
    functions = KEPT["by a given name"][0]
    text, _ = convert(decorated(functions, "register('a')\n@register('b')"), {"m.Kept"})
    assert "@lazily(register('a'))\n@lazily(register('b'))\nclass Kept" in text


def test_sizes_that_their_names_do_not_tell_are_declared() -> None:
    functions, decorator = KEPT["in a list"]
    head = "import flax.linen as nn\nclass MLP(nn.Module):\n    def __call__(self, x): ...\n"
    sizes = {"m.Kept": (SizeArgument("depth", argument="x", axis=1),)}
    new, _ = convert_modules(
        {"m": head + decorated(functions, decorator)}, converted={"m.Kept"}, sizes=sizes
    )
    assert '@lazily(register, depth=Size("x", 1))' in new["m"]
