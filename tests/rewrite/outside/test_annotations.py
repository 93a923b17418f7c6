"""Annotations that name explicit classes and that the running program reads."""

from __future__ import annotations

import textwrap

import pytest

from tests.rewrite.running import lazy, printed_alike
from tests.rewrite.test_forms import auto, said

SOURCE = """\
import dataclasses
import functools
import inspect
import typing

import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    width: int = 3

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


def main():
    print(Net().init(jax.random.key(0), jnp.ones((2, 3))))
"""
READ = {
    "singledispatch": """\
@functools.singledispatch
def name(module):
    return "other"
@name.register
def _(module: Net):
    return f"net {module.width}"
print(name(Net()), name(3))
""",
    "singledispatchmethod": """\
class Visitor:
    @functools.singledispatchmethod
    def visit(self, module):
        return "other"
    @visit.register
    def _(self, module: "Net"):
        return "net"
print(Visitor().visit(Net()))
""",
    "types of fields": """\
@dataclasses.dataclass
class Config:
    net: Net
for one in dataclasses.fields(Config):
    print(one.type(4).init(jax.random.key(0), jnp.ones((2, 3))))
""",
    "checked by a decorator": """\
def checked(function):
    def call(*args):
        for value, one in zip(args, inspect.signature(function).parameters.values()):
            if not isinstance(value, one.annotation):
                raise TypeError(one.name)
        return function(*args)
    return call
@checked
def width(net: Net) -> int:
    return net.width
print(width(Net(5)))
""",
    "made by a decorator": """\
def provide(function):
    return lambda: function(**{k: v() for k, v in function.__annotations__.items()})
@provide
def train(net: Net):
    return net.width
print(train())
""",
    "hints": """\
def train(net: typing.Optional[Net] = None):
    return net
kind = typing.get_type_hints(train)["net"]
print(isinstance(Net(), typing.get_args(kind)[0]))
""",
    "another name of a reader": """\
from typing import get_type_hints as hints
def train(net: Net):
    return net.width
print(hints(train)["net"]().width)
""",
    "what a function returns": """\
def make(width) -> Net:
    return Net(width)
print(isinstance(make(2), inspect.signature(make).return_annotation))
""",
    "all that is known of arguments": """\
def train(net: Net):
    return net.width
print(inspect.getfullargspec(train).annotations["net"]().width)
""",
    "types of fields by a function": """\
@dataclasses.dataclass
class Config:
    net: Net
def built(one):
    return one.type()
print([built(one).width for one in dataclasses.fields(Config)])
""",
    "types of fields by their names": """\
@dataclasses.dataclass
class Config:
    net: Net
print(Config.__dataclass_fields__["net"].type().width)
""",
    "types of fields that are kept": """\
@dataclasses.dataclass
class Config:
    net: Net
kept = {one.name: one for one in dataclasses.fields(Config)}
print(kept["net"].type().width)
""",
    "a decorator with options": """\
def checked(strict):
    def wrap(function):
        kind = function.__annotations__["net"]
        return lambda net: (isinstance(net, kind), strict, function(net))
    return wrap
@checked(True)
def width(net: Net):
    return net.width
print(width(Net(5)))
""",
    "a decorator with options or none": """\
def checked(function=None, strict=False):
    if function is None:
        return functools.partial(checked, strict=strict)
    kind = function.__annotations__["net"]
    return lambda net: (isinstance(net, kind), strict, function(net))
@checked(strict=True)
def width(net: Net):
    return net.width
print(width(Net(5)))
""",
    "a method that decorates": """\
class Registry:
    def __init__(self):
        self.kinds = {}
    def add(self, function):
        self.kinds[function.__name__] = function.__annotations__["net"]
        return function
registry = Registry()
@registry.add
def width(net: Net):
    return net.width
print(registry.kinds["width"](4).width)
""",
    "a class that decorates": """\
class Checked:
    def __init__(self, function):
        self.function, self.kind = function, function.__annotations__["net"]
    def __call__(self, net):
        return isinstance(net, self.kind), self.function(net)
@Checked
def width(net: Net):
    return net.width
print(width(Net(5)))
""",
    "a class above": """\
class Base:
    def __init_subclass__(cls):
        cls.made = {name: kind() for name, kind in cls.__annotations__.items()}
class Config(Base):
    net: Net
print(Config.made["net"].width)
""",
    "a method of a class above": """\
class Base:
    def make(self):
        for name, kind in type(self).__annotations__.items():
            setattr(self, name, kind())
        return self
class Config(Base):
    net: Net
print(Config().make().net.width)
""",
    "a walk over bases": """\
class First:
    net: Net
class Second(First):
    pass
def kinds(cls):
    return [kind for one in cls.__mro__ for kind in vars(one).get("__annotations__", {}).values()]
print([kind().width for kind in kinds(Second)])
""",
    "an instance": """\
@dataclasses.dataclass
class Config:
    net: Net
def show(config):
    print([isinstance(getattr(config, k), v) for k, v in config.__annotations__.items()])
show(Config(Net()))
""",
    "configurations in configurations": """\
@dataclasses.dataclass
class Inner:
    net: Net
@dataclasses.dataclass
class Outer:
    inner: Inner
def load(kind, data):
    if kind not in (Inner, Outer):
        return kind(data)
    return kind(**{one.name: load(one.type, data[one.name]) for one in dataclasses.fields(kind)})
print(load(Outer, {"inner": {"net": 7}}).inner.net.width)
""",
    "a metaclass": """\
class Meta(type):
    def __new__(mcs, name, bases, space):
        space["made"] = {k: v() for k, v in space.get("__annotations__", {}).items()}
        return super().__new__(mcs, name, bases, space)
class Config(metaclass=Meta):
    net: Net
print(Config.made["net"].width)
""",
    "a name in a string": """\
class Config:
    net: Net
print(getattr(Config, "__annotations__")["net"]().width)
""",
    "a function that is registered": """\
@functools.singledispatch
def name(module):
    return "other"
def named(module: Net):
    return "net"
name.register(named)
print(name(Net()))
""",
    "a reader that is handed on": """\
def kind(function):
    return function.__annotations__["net"]
def through(first, second):
    return first(second)
def width(net: Net):
    return net.width
print(through(kind, width)().width)
""",
    "a reader by its name": """\
def kind(function):
    return function.__annotations__["net"]
def width(net: Net):
    return net.width
print(locals()["kind"](width)().width)
""",
    "a partial function": """\
def train(net: Net, steps: int):
    return net.width
def make(function):
    return function.func.__annotations__["net"]()
print(make(functools.partial(train, steps=3)).width)
""",
    "a method that its class decorates with": """\
class Holder:
    def checked(function):
        kind = function.__annotations__["net"]
        return lambda self, net: (isinstance(net, kind), function(self, net))
    def width(self, net: Net):
        return net.width
    both = checked(width)
print(Holder().both(Net(5)))
""",
    "a part of a method": """\
class Reader:
    def kind(self, name, function):
        return function.__annotations__[name]
    of_net = functools.partialmethod(kind, "net")
def width(net: Net):
    return net.width
print(Reader().of_net(width)().width)
""",
    "a parameter that is bound anew": """\
def kind(function):
    function = getattr(function, "__wrapped__", function)
    return function.__annotations__["net"]
def width(net: Net):
    return net.width
print(kind(width)().width)
""",
    "an unpacked argument": """\
def kind(function):
    return function.__annotations__["net"]
def width(net: Net):
    return net.width
print(kind(*[width])().width)
""",
    "a base that a function gives": """\
class Reader:
    def make(self):
        return {k: v() for k, v in inspect.get_annotations(type(self)).items()}
def base():
    return Reader
class Config(base()):
    net: Net
print(Config().make()["net"].width)
""",
    "a class above that is not the first": """\
class Mixin:
    def make(self):
        return {k: v() for k, v in inspect.get_annotations(type(self)).items()}
class Plain:
    pass
class Config(Plain, Mixin):
    net: Net
print(Config().make()["net"].width)
""",
    "a function that is said to be another": """\
def width(net: Net):
    return net.width
@functools.wraps(width)
def other(*args):
    return width(*args)
print(inspect.signature(other).parameters["net"].annotation(2).width)
""",
    "a function that becomes another": """\
def width(net: Net):
    return net.width
def other(*args):
    return width(*args)
functools.update_wrapper(other, width)
print(other.__annotations__["net"](2).width)
""",
    "what another decorator gives": """\
def wrap(function):
    def call(net: Net):
        return function(net.width)
    return call
def kind(function):
    return lambda: function.__annotations__["net"]().width
@kind
@wrap
def width(one: int):
    return one
print(width())
""",
    "one of several functions": """\
def first(net: int):
    return net
def second(net: Net):
    return net
for one in (first, second):
    print(typing.get_type_hints(one)["net"].__name__, typing.get_type_hints(one)["net"](3) is not None)
""",
}
NOT_READ = {
    "nobody reads it": "def width(net: Net) -> int:\n    return net.width\nprint(width(Net(5)))\n",
    "registered by its class": READ["singledispatch"]
    .replace("register\n", "register(Net)\n")
    .replace("module: Net", "module"),
    "fields by their names": """\
@dataclasses.dataclass
class Config:
    net: Net
print([(one.name, getattr(Config(Net()), one.name).width) for one in dataclasses.fields(Config)])
""",
    "hints of another function": """\
def train(net: Net):
    return net.width
def test(steps: int):
    return steps
print(typing.get_type_hints(test), train(Net()))
""",
    "types of another class's fields": """\
@dataclasses.dataclass
class Config:
    net: Net
@dataclasses.dataclass
class Other:
    steps: int = 3
print([one.type for one in dataclasses.fields(Other)], Config(Net()).net.width)
print([one.name for one in dataclasses.fields(Config)])
""",
    "a decorator of another function": """\
def checked(function):
    kinds = [one.annotation for one in inspect.signature(function).parameters.values()]
    return lambda *args: (kinds, function(*args))
@checked
def twice(steps: int):
    return 2 * steps
def width(net: Net):
    return net.width
print(twice(3), width(Net(5)))
""",
    "a decorator with options, of another function": """\
def checked(function=None, strict=False):
    if function is None:
        return functools.partial(checked, strict=strict)
    return lambda *args: (function.__annotations__, strict, function(*args))
@checked(strict=True)
def twice(steps: int):
    return 2 * steps
@checked
def thrice(steps: int):
    return 3 * steps
def width(net: Net):
    return net.width
print(twice(3), thrice(3), width(Net(5)))
""",
    "a class above others": """\
class Base:
    def __init_subclass__(cls):
        cls.kinds = dict(cls.__annotations__)
class Config(Base):
    steps: int
class Holder:
    net: Net
    def __init__(self, net):
        self.net = net
print(Config.kinds, Holder(Net()).net.width)
""",
    "no more than names": """\
class Config:
    net: Net
    steps: int
print(list(Config.__annotations__), "net" in Config.__annotations__, len(Config.__annotations__))
for name in Config.__annotations__:
    print(name)
""",
    "a variable in a function": """\
def train(steps: int):
    net: Net = Net(steps)
    return net.width
print(typing.get_type_hints(train), train(4))
""",
    "a variable with that name": """\
def width(net: Net):
    annotation = net.width
    return annotation
print(width(Net(6)))
""",
    "annotations that are written": """\
class Config:
    steps: int
Config.__annotations__["more"] = float
setattr(Config, "__annotations__", {})
def width(net: Net):
    return net.width
print(width(Net(6)))
""",
    "the type of something else": """\
class Token:
    type = "word"
def width(net: Net):
    return net.width
print(Token.type, width(Net(6)), [one.name for one in dataclasses.fields(Net)][:1])
""",
    "a base of other classes": """\
class Base:
    def kinds(self):
        return {k: v for one in type(self).__mro__ for k, v in vars(one).get("__annotations__", {}).items()}
class Config(Base):
    steps: int
def width(net: Net):
    return net.width
print(Config().kinds(), width(Net(6)))
""",
}


def program(code: str) -> str:
    """The program with the code in its main function."""
    return SOURCE + textwrap.indent(code, "    ")


@pytest.mark.parametrize("code", READ.values(), ids=READ)
def test_a_class_of_an_annotation_that_is_read_is_lazy(code: str) -> None:
    assert printed_alike(program(code)) == {"m.Net": "lazy"}


@pytest.mark.parametrize("code", NOT_READ.values(), ids=NOT_READ)
def test_other_annotations_keep_no_class_lazy(code: str) -> None:
    assert printed_alike(program(code)) == {"m.Net": "explicit"}


def test_the_reason_says_what_reads_it() -> None:
    reason = lazy(program(READ["singledispatch"]), "Net")
    assert "name.register dispatches by this annotation" in reason
    reason = lazy(program(READ["made by a decorator"]), "Net")
    assert "m reads annotations, with __annotations__" in reason


# ---- packages that read annotations: whose they get, the code says

GIVEN = {
    "a function is decorated": """\
import beartype
@beartype.beartype
def width(net: Net):
    return net.width
""",
    "by another name": """\
from beartype import beartype as typed
@typed
def width(net: Net):
    return net.width
""",
    "by a name of its own": """\
import beartype
check = beartype.beartype
@check
def width(net: Net):
    return net.width
""",
    "with settings": """\
import beartype
check = beartype.beartype(conf=beartype.BeartypeConf())
@check
def width(net: Net):
    return net.width
""",
    "where it is there": """\
try:
    from beartype import beartype
except ImportError:
    beartype = lambda function: function
@beartype
def width(net: Net):
    return net.width
""",
    "a function is handed over": """\
import beartype
def width(net: Net):
    return net.width
width_of = beartype.beartype(width)
""",
    "by a decorator of the project": """\
import beartype
def checked(function):
    return beartype.beartype(function)
@checked
def width(net: Net):
    return net.width
""",
    "by a function that makes the decorator": """\
import beartype
def checked():
    return beartype.beartype(conf=beartype.BeartypeConf())
@checked()
def width(net: Net):
    return net.width
""",
    "by what a function is given": """\
import beartype
def make(check):
    @check
    def width(net: Net):
        return net.width
    return width
width = make(beartype.beartype)
""",
    "by what an object keeps": """\
import plum
class Table:
    def __init__(self):
        self.dispatch = plum.Dispatcher()
table = Table()
@table.dispatch
def width(net: Net):
    return net.width
""",
    "a class below a model": """\
import pydantic
class Base(pydantic.BaseModel):
    steps: int
class Config(Base):
    net: Net
""",
    "what a function below another decorator gives": """\
import beartype
def made(function):
    def call(net: Net):
        return function(net.width)
    return call
def wrap(function):
    return made(function)
@beartype.beartype
@wrap
def width(one: int):
    return one
""",
    "what another decorator gives": """\
import beartype
def wrap(function):
    def call(net: Net):
        return function(net.width)
    return call
@beartype.beartype
@wrap
def width(one: int):
    return one
""",
    "a method": """\
import beartype
class User:
    @beartype.beartype
    def width(self, net: Net):
        return net.width
""",
    "a class and its methods": """\
import beartype
@beartype.beartype
class User:
    def width(self, net: Net):
        return net.width
""",
    "a configuration inside another": """\
import dataclasses
import dacite
@dataclasses.dataclass
class Inner:
    net: Net
@dataclasses.dataclass
class Outer:
    inner: "Inner"
def load(data):
    return dacite.from_dict(Outer, data)
""",
    "a command": """\
import tyro
def train(net: Net):
    return net.width
tyro.cli(train)
""",
    "a class that a parameter is": """\
import tyro
class Config:
    net: Net
def parsed(cls):
    return tyro.cli(cls)
config = parsed(Config)
""",
    "a class out of a table": """\
import tyro
class Config:
    net: Net
KINDS = {"a": Config}
def parsed(name):
    return tyro.cli(KINDS[name])
""",
    "by a table of functions": """\
import plum
dispatch = plum.Dispatcher()
@dispatch
def name(steps: int):
    return "steps"
@dispatch
def name(net: Net):
    return "net"
""",
    "by an attribute of a function": """\
from plum import dispatch
@dispatch.abstract
def name(one):
    pass
@name.dispatch
def _(net: Net):
    return "net"
""",
    "by a part of an attribute": """\
import functools
from plum import dispatch
@dispatch
def name(one: int):
    return "int"
@functools.partial(name.dispatch, precedence=2)
def _(net: Net):
    return "net"
""",
    "an adapter": """\
import pydantic
class Config:
    net: Net
adapter = pydantic.TypeAdapter(Config)
""",
    "a parser": """\
from transformers import HfArgumentParser
class Config:
    net: Net
parser = HfArgumentParser((Config,))
""",
    "handed on": """\
import functools
import beartype
def width(net: Net):
    return net.width
made = functools.reduce(lambda one, check: check(one), [beartype.beartype], width)
""",
    "a whole package": """\
from beartype.claw import beartype_this_package
beartype_this_package()
def width(net: Net):
    return net.width
""",
    "variables of functions": """\
from jaxtyping import install_import_hook
install_import_hook("m", "beartype.beartype")
def width(steps):
    net: Net = Net(steps)
    return net.width
""",
    "variables of a function": """\
import typeguard
@typeguard.typechecked
def width(steps: int):
    net: Net = Net(steps)
    return net.width
""",
    "by a string": """\
import importlib
check = importlib.import_module("beartype").beartype
@check
def width(net: Net):
    return net.width
""",
}
NOT_GIVEN = {
    "another function": """\
import beartype
@beartype.beartype
def twice(steps: int):
    return 2 * steps
""",
    "another function, by settings": """\
import beartype
check = beartype.beartype(conf=beartype.BeartypeConf())
@check
def twice(steps: int):
    return 2 * steps
""",
    "nothing": "import plum\nprint(plum.__version__)\n",
    "another class": """\
import pydantic
class Config(pydantic.BaseModel):
    steps: int = pydantic.Field(3)
def read(text):
    try:
        return Config(steps=text)
    except pydantic.ValidationError:
        return None
""",
    "no class, in a check": """\
import pydantic
def is_model(one):
    return isinstance(one, pydantic.BaseModel)
""",
    "another command": """\
import tyro
def train(steps: int):
    return steps
tyro.cli(train)
""",
    "another configuration": """\
import dataclasses
import dacite
@dataclasses.dataclass
class Config:
    steps: int
def load(data):
    return dacite.from_dict(Config, data)
""",
    "other functions of a table": """\
from plum import dispatch
@dispatch.abstract
def name(one):
    pass
@name.dispatch
def _(one: int):
    return "int"
@dispatch
def name_of(one: str):
    return name(one)
""",
    "a decorated function's variables": """\
import beartype
@beartype.beartype
def width(steps: int):
    net: Net = Net(steps)
    return net.width
""",
    "another function, with a decorator of the project's": """\
import beartype
def wrap(function):
    def call(steps: int):
        return function(steps)
    return call
@beartype.beartype
@wrap
def twice(steps: int):
    return 2 * steps
""",
    "a type": """\
from plum import Callable
Maker = Callable[[int], int]
""",
}
ELSEWHERE = "def size(net: Net):\n    return net.width\n"


def forms_of(code: str) -> dict[str, str]:
    model = SOURCE[: SOURCE.index("def main")]
    return said(auto({"m.py": model + code + "\n\ndef main():\n    print(Net())\n"}))


@pytest.mark.parametrize("code", GIVEN.values(), ids=GIVEN)
def test_a_class_of_an_annotation_that_a_package_gets_is_lazy(code: str) -> None:
    assert forms_of(code) == {"m.Net": "lazy"}


@pytest.mark.parametrize("code", NOT_GIVEN.values(), ids=NOT_GIVEN)
def test_annotations_that_a_package_does_not_get_keep_no_class_lazy(code: str) -> None:
    assert forms_of(code + ELSEWHERE) == {"m.Net": "explicit"}


def test_a_name_that_another_file_hands_on_is_the_package_s() -> None:
    files = {
        "tools.py": "from plum import dispatch, convert\n",
        "m.py": SOURCE + "\n\nfrom tools import dispatch as on\n@on\ndef f(net: Net):\n    pass\n",
    }
    assert said(auto(files)) == {"m.Net": "lazy"}
    files["m.py"] = files["m.py"].replace("net: Net", "net: int")
    assert said(auto(files)) == {"m.Net": "explicit"}


@pytest.mark.parametrize(
    "call",
    [
        "from tools import kind as of\nof(width)",
        "import tools\ntools.kind(width)",
        "from tools import *\nkind(width)",
        "import package\npackage.kind(width)",
        "import lazily\nlazily.kind(width)",
        "from importlib import import_module\nimport_module('tools').kind(width)",
    ],
)
def test_a_reader_in_another_file_reads_what_it_is_given(call: str) -> None:
    files = {
        "tools.py": "def kind(function):\n    return function.__annotations__\n",
        "package.py": "from tools import kind\n",
        "lazily.py": "def __getattr__(name):\n    import tools\n    return getattr(tools, name)\n",
        "m.py": f"{SOURCE}\n\ndef width(net: Net):\n    return net.width\n\n\n{call}\n",
    }
    assert said(auto(files)) == {"m.Net": "lazy"}
    files["m.py"] = (
        files["m.py"].replace("kind(width)", "kind(main)").replace("of(width)", "of(main)")
    )
    assert said(auto(files)) == {"m.Net": "explicit"}
